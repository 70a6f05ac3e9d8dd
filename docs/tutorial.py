"""Runs the tutorial: ``python docs/tutorial.py`` writes what its commands print into docs/tutorial.md.

A ``console`` block holds commands after ``$`` and what they print; ``python`` blocks share one interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def run(page: str) -> str:
    """The page with what its commands print now.

    Raises:
        subprocess.CalledProcessError: a Python block fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "models" / "demo", Path(folder) / "demo")
        shim = Path(folder) / "ort-rknpu"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ort_rknpu "$@"\n')
        shim.chmod(0o755)
        path = os.pathsep.join([folder, str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        program = "\n".join(body for kind, body in _BLOCK.findall(page) if kind == "python")
        subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True)

        def block(found: re.Match[str]) -> str:
            kind, body = found.groups()
            if kind == "python":
                return found.group()
            lines = [line for command in _commands(body) for line in _console(command, folder, environment)]
            return "\n".join(["```console", *lines, "```"])

        return _BLOCK.sub(block, page)


def _commands(body: str) -> Iterator[str]:
    return (line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ "))


def _console(command: str, folder: str, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    printed = (done.stdout + done.stderr).rstrip()
    return [f"$ {command}", *([line.rstrip() for line in printed.splitlines()] if printed else [])]


if __name__ == "__main__":
    PAGE.write_text(run(PAGE.read_text("utf-8")), "utf-8")
