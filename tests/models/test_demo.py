"""The demo models are what their script builds, and their dumps mean the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import ort_rknpu
from models import demo


@pytest.mark.parametrize("name", demo.DEMOS)
def test_the_script_builds_the_stored_model(name: str) -> None:
    assert demo.build(name) == onnx.load(demo.FOLDER / f"{name}.onnx")


@pytest.mark.parametrize("ops", ["native", "python"])
@pytest.mark.parametrize("name", demo.DEMOS)
def test_the_dump_equals_its_source(name: str, ops: str) -> None:
    cpu = ["CPUExecutionProvider"]
    provider = ("RknpuExecutionProvider", {"soc": "rk3588", "numerics": "float32", "ops": ops})
    source = onnxruntime.InferenceSession(demo.FOLDER / f"{name}.onnx", providers=cpu)
    dump = ort_rknpu.InferenceSession(demo.FOLDER / f"{name}.fused.onnx", providers=[provider, *cpu])
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in source.get_inputs()}
    expected, found = source.run(None, feeds)[0], dump.run(None, feeds)[0]
    assert np.max(np.abs(found - expected) / (1 + np.abs(expected))) < 1e-5
