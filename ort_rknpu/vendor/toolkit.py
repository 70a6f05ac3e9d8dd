"""Runs the vendor's toolkit, installed in another interpreter, as a black box."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnx

from ort_rknpu.errors import ToolkitError
from ort_rknpu.targets.socs import Target
from ort_rknpu.vendor.fill import fill_stubs, has_stubs, random_inputs
from ort_rknpu.vendor.log import BuildLog, parse_log

TIME_OUT = "timeout"
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Outcome:
    """One build: whether it went through, else the stage (``config``, ``load``, ``build``) it ended in and why."""

    ok: bool
    stage: str
    error: str
    log: BuildLog
    seconds: Mapping[str, float] = field(default_factory=dict)


class Toolkit:
    """The vendor's toolkit in the interpreter ``python``, as a context manager; ``version`` says which it is.

    Each build runs in a process of its own, so that a compiler that aborts or hangs costs that build alone.

    Raises:
        ToolkitError: the interpreter does not start, or the toolkit does not import there.
    """

    def __init__(self, python: str | Path, timeout: float = 600.0, retries: int = 1) -> None:
        self.python = str(python)
        self.timeout = timeout
        self.retries = retries
        self._process: subprocess.Popen[str] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="ort-rknpu-")
        try:
            self._process = self._start()
            self.version = self._greet()
        except BaseException:
            self.close()
            raise

    def _start(self) -> subprocess.Popen[str]:
        driver = Path(self._scratch.name, "driver.py")
        driver.write_text(files("ort_rknpu.vendor").joinpath("driver.py").read_text("utf-8"), "utf-8")
        self._chatter = Path(self._scratch.name, "driver.log")
        try:
            with self._chatter.open("w") as chatter:
                return subprocess.Popen(
                    [self.python, str(driver)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=chatter,
                    text=True,
                    encoding="utf-8",
                    cwd=self._scratch.name,
                    start_new_session=True,
                )
        except OSError as error:
            raise ToolkitError(f"the interpreter {self.python!r} does not start: {error.strerror}") from error

    def _greet(self) -> str:
        greeting = self._receive("start")
        if "toolkit" not in greeting:
            reason = greeting.get("error", "no version")
            raise ToolkitError(f"the interpreter {self.python!r} can not import rknn-toolkit2: {reason}")
        return str(greeting["toolkit"])

    def _receive(self, what: str) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return answer
        chatter = self._chatter.read_text("utf-8", errors="replace")
        said = [text.strip() for text in chatter.splitlines() if text.strip()]
        tail = said[-1] if said else "it said nothing"
        raise ToolkitError(f"the interpreter {self.python!r} failed to {what}: {line.strip() or tail}")

    def build(
        self,
        model: str | Path | onnx.ModelProto,
        target: Target,
        shapes: Shapes | None = None,
        seed: int = 0,
        dumps: Path | None = None,
    ) -> Outcome:
        """Builds a model for a target and reads the log; a failure is tried again before it is believed.

        Tensors without data are filled at random; int8 is calibrated with one random feed. ``dumps`` names a folder
        for the intermediate models that the toolkit writes.

        Raises:
            ToolkitError: the interpreter died, or an input that must be drawn at random has no fixed shape.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch.name) as folder:
            job = self._job(model, target, shapes, seed, Path(folder))
            if dumps is not None:
                job["dumps"] = str(dumps.absolute())
            for _ in range(self.retries + 1):
                outcome = self._run(job)
                if outcome.ok or outcome.error == TIME_OUT:
                    break
        return outcome

    def _job(
        self, model: str | Path | onnx.ModelProto, target: Target, shapes: Shapes | None, seed: int, folder: Path
    ) -> dict[str, Any]:
        if isinstance(model, onnx.ModelProto):
            proto, home, path = model, Path("."), folder / "model.onnx"
            stubs = True
        else:
            path = Path(model).absolute()
            proto, home = onnx.load(str(path), load_external_data=False), path.parent
            stubs = has_stubs(proto, home)
        if stubs:
            path = folder / "model.onnx"
            onnx.save(fill_stubs(proto, home, seed), str(path))
        job: dict[str, Any] = {
            "model": str(path),
            "soc": target.soc.name,
            "quantize": target.precision == "int8",
            "log": str(folder / "log"),
            "timeout": self.timeout,
        }
        if shapes:
            job["inputs"] = list(shapes)
            job["input_size_list"] = [list(shape) for shape in shapes.values()]
        if job["quantize"]:
            names = []
            for index, value in enumerate(random_inputs(proto, seed, shapes).values()):
                names.append(str(folder / f"input{index}.npy"))
                np.save(names[-1], value)
            (folder / "dataset.txt").write_text(" ".join(names) + "\n", "utf-8")
            job["dataset"] = str(folder / "dataset.txt")
        return job

    def _run(self, job: dict[str, Any]) -> Outcome:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ToolkitError(f"the interpreter {self.python!r} has ended: {error.strerror}") from error
        answer = self._receive("build")
        log_path = Path(job["log"])
        log = parse_log(log_path.read_text("utf-8", errors="replace")) if log_path.exists() else BuildLog()
        return Outcome(
            ok=bool(answer["ok"]),
            stage="" if answer["ok"] else str(answer["stage"]),
            error="" if answer["ok"] else _reason(answer, log),
            log=log,
            seconds=answer.get("seconds", {}),
        )

    def close(self) -> None:
        """Ends the interpreter and whatever it is building."""
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._scratch.cleanup()

    def __enter__(self) -> Toolkit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reason(answer: Mapping[str, Any], log: BuildLog) -> str:
    """One line on why a build failed: a signal first, then what the log calls an error, else how the run ended."""
    if answer.get("timed_out"):
        return TIME_OUT
    if answer.get("signal"):
        return " | ".join([f"signal {answer['signal']}", *log.errors, *log.overflows[:1]])
    if log.errors:
        return " | ".join(log.errors)
    lines = [line.strip() for line in str(answer.get("error") or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
