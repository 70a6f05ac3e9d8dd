"""``ort-rknpu run`` and ``ort-rknpu prepare``, as a user calls them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.custom_ops import golden

VIT = golden.load("_models/vit")


def cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ort_rknpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("ops", ["native", "python"])
def test_run_writes_the_outputs_of_given_inputs(ops: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VIT.inputs["x"])
    done = cli("run", VIT.fused, "--ops", ops, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    assert "output y: float32[1, 5]" in done.stdout
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], VIT.expected["y"], atol=1e-5)


def test_prepare_writes_a_model_that_onnxruntime_loads(tmp_path: Path) -> None:
    assert cli("prepare", VIT.fused, tmp_path / "out.onnx", "--quiet").stdout == ""
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, VIT.inputs)[0], VIT.expected["y"], atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.onnx"], "cannot read 'nowhere.onnx': No such file or directory"),
        (["run", __file__], "is no ONNX model, or truncated"),
        (["run", VIT.fused, "--ops", "fast"], "'fast' is not one of 'native', 'python'"),
        (["run", VIT.fused, "--input", "x"], "--input 'x' is not NAME=FILE.npy"),
        (["run", VIT.fused, "--input", f"x={__file__}"], "cannot read input 'x'"),
        (["prepare", VIT.fused, "/nowhere/out.onnx"], "cannot write '/nowhere/out.onnx'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[object], message: str) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
