"""A stand-in for the vendor's toolkit, and the model it knows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.vendor.toolkit import Toolkit

STAND_IN = Path(__file__).resolve().parents[2] / "data" / "vendor" / "stand_in"


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> str:
    """An interpreter in which a toolkit can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    return sys.executable


@pytest.fixture
def toolkit(stand_in: str) -> Iterator[Toolkit]:
    with Toolkit(stand_in, timeout=20) as running:
        yield running


@pytest.fixture
def conv_swish_exp(tmp_path: Path) -> Callable[..., Path]:
    """Writes Conv -> Sigmoid, Mul -> Exp; the graph's name tells the stand-in how to behave."""

    def write(
        name: str = "well", opset: int = 12, stub: bool = False, shape: tuple[int | str, ...] = (1, 16, 8, 8)
    ) -> Path:
        weight = numpy_helper.from_array(np.full((16, 16, 3, 3), 0.1, np.float32), "w")
        if stub:
            weight.ClearField("raw_data")
            weight.data_location = TensorProto.EXTERNAL
            weight.external_data.add(key="location", value="absent.bin")
        graph = helper.make_graph(
            [
                helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
                helper.make_node("Sigmoid", ["y"], ["s"], "sigmoid"),
                helper.make_node("Mul", ["y", "s"], ["m"], "mul"),
                helper.make_node("Exp", ["m"], ["z"], "exp"),
            ],
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, shape)],
            [weight],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    return write
