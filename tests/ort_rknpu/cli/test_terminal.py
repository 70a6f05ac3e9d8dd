"""On a terminal the commands show that work goes on; elsewhere, with ``--quiet`` or ``NO_COLOR``, nothing is added."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[3] / "models" / "demo" / "yolo.onnx"


def on_terminal(*arguments: str, **environment: str) -> str:
    """What ``check`` writes to standard error when that is a terminal."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "ort_rknpu", "check", str(DEMO), "--soc", "rk3588", *arguments]
    # one variable less than the tests' own surroundings: CI machines may set NO_COLOR or a dumb terminal
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    variables |= {"TERM": "xterm-256color", **environment}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=variables)
    os.close(terminal)
    written = b""
    try:
        while part := os.read(controller, 4096):
            written += part
    except OSError:  # the terminal's other end was closed
        pass
    os.close(controller)
    assert process.wait() == 0
    return written.decode()


def test_a_terminal_shows_what_is_going_on() -> None:
    written = on_terminal()
    assert "checking yolo.onnx" in written
    assert "\x1b[32m" in written


def test_no_color_is_honoured() -> None:
    written = on_terminal(NO_COLOR="1")
    assert "checking yolo.onnx" in written
    assert "\x1b[32m" not in written


def test_quiet_shows_nothing() -> None:
    assert on_terminal("--quiet") == ""


def test_without_a_terminal_nothing_is_added() -> None:
    command = [sys.executable, "-m", "ort_rknpu", "check", str(DEMO), "--soc", "rk3588"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
