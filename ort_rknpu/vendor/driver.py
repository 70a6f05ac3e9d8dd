"""Runs inside the vendor's interpreter: reads jobs as JSON lines, builds each model in a child process, logs to a file.

The script stands alone (it imports nothing of this project) and uses the toolkit's public API only. The toolkit is
imported once; every build runs in a fork of that process, so that a compiler that aborts takes only its child along.

Protocol: the first line on standard output is ``{"toolkit": version}`` or ``{"error": text}``. A job is
``{"model", "soc", "quantize", "dataset", "inputs", "input_size_list", "log", "timeout", "dumps"}``; its answer is
``{"ok", "stage", "error", "signal", "timed_out", "seconds": {"load", "build"}}``, where ``stage`` names the last step
that was reached: ``config``, ``load``, ``build`` or ``done``, and ``error`` says how it ended when ``ok`` is false.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Job = dict[str, Any]


def build(job: Job, report: Callable[[str], None]) -> str | None:
    """One build in this process; ``report(stage, seconds)`` is called as each step begins."""
    from rknn.api import RKNN  # type: ignore[import-not-found]

    toolkit = RKNN(verbose=True)
    options = {"target_platform": job["soc"]}
    report("config")
    if toolkit.config(**options) not in (0, None):
        return "config was refused"
    loading = {"model": job["model"]}
    if job.get("inputs"):
        loading["inputs"] = job["inputs"]
        loading["input_size_list"] = job["input_size_list"]
    report("load")
    if toolkit.load_onnx(**loading) != 0:
        return "load_onnx was refused"
    report("build")
    arguments = {"do_quantization": bool(job["quantize"])}
    if job["quantize"]:
        arguments["dataset"] = job["dataset"]
    if toolkit.build(**arguments) != 0:
        return "build was refused"
    report("done")
    return None


def child(job: Job, pipe: int) -> None:
    """The forked process: standard output and error go to the log, steps and the outcome to the pipe."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)

    def report(stage: str) -> None:
        os.write(pipe, (json.dumps({"stage": stage, "time": time.perf_counter()}) + "\n").encode())

    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)  # the toolkit leaves its dumps in the working directory
        try:
            error = build(job, report)
        except BaseException as raised:
            traceback.print_exc()
            error = f"{type(raised).__name__}: {raised}"
        if job.get("dumps"):
            shutil.copytree(".", job["dumps"], dirs_exist_ok=True)
        os.chdir("/")
    os.write(pipe, (json.dumps({"error": error}) + "\n").encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run(job: Job) -> Job:
    """Forks, waits no longer than the job's time-out, and says how the child ended."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(job, writer)
    os.close(writer)
    deadline = time.monotonic() + job.get("timeout", 600)
    text = b""
    timed_out = False
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            timed_out = True
            os.kill(pid, signal.SIGKILL)
            break
        block = os.read(reader, 65536)
        if not block:
            break
        text += block
    os.close(reader)
    status = os.waitpid(pid, 0)[1]
    return outcome(text.decode(), status, timed_out)


def outcome(text: str, status: int, timed_out: bool) -> Job:
    """The answer to a job from what the child wrote and how it ended."""
    stage, error, ended = "start", None, False
    times: dict[str, float] = {}
    for line in text.splitlines():
        message = json.loads(line)
        if "stage" in message:
            stage = message["stage"]
            times[stage] = message["time"]
        else:
            ended, error = True, message["error"]
    killer = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if timed_out:
        error = "timed out"
    elif killer:
        error = f"died of signal {killer}"
    elif not ended:
        error = f"ended with status {os.WEXITSTATUS(status)}"
    seconds = {}
    for step, following in (("load", "build"), ("build", "done")):
        if following in times:
            seconds[step] = times[following] - times[step]
    answer = {"ok": error is None, "stage": stage, "error": error, "seconds": seconds}
    answer["signal"] = 0 if timed_out else killer
    answer["timed_out"] = timed_out
    return answer


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the toolkit prints while it is imported must not mix with the answers
    try:
        import rknn.api  # type: ignore[import-not-found]  # noqa: F401

        found = {"toolkit": version("rknn-toolkit2")}
    except Exception as raised:
        answers.write(json.dumps({"error": f"{type(raised).__name__}: {raised}"}) + "\n")
        return 1
    answers.write(json.dumps(found) + "\n")
    for line in sys.stdin:
        if line.strip():
            answers.write(json.dumps(run(json.loads(line))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
