"""Compiles small graphs written as a few lines of text and shows the predicted layer table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.compiler import Compilation, compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target

_LINE = re.compile(r"(?P<outputs>.+?) = (?P<op>\w+)(<(?P<attributes>.*)>)?\((?P<inputs>.*)\)$")
Weight = np.ndarray | Sequence[int]


def model_of(
    script: str, inputs: Mapping[str, Sequence[int]], weights: Mapping[str, Weight] | None = None, opset: int = 17
) -> onnx.ModelProto:
    """A model from lines ``y = Op<attribute=value>(a, b)``; its nodes are named after their first output.

    A weight given by its shape is drawn at random; the outputs of the last line are the model's.
    """
    nodes = []
    rng = np.random.default_rng(0)
    for line in filter(None, map(str.strip, script.splitlines())):
        found = _LINE.match(line)
        assert found is not None, line
        outputs = [name.strip() for name in found["outputs"].split(",")]
        read = [name.strip() for name in found["inputs"].split(",")]
        attributes = eval(f"dict({found['attributes'] or ''})")
        nodes.append(helper.make_node(found["op"], read, outputs, name=outputs[0], **attributes))
    constants = []
    for name, weight in (weights or {}).items():
        data = weight if isinstance(weight, np.ndarray) else rng.normal(size=tuple(weight)).astype(np.float32)
        constants.append(numpy_helper.from_array(data, name))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def compiled(
    script: str,
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Weight] | None = None,
    soc: str = "rk3588",
    opset: int = 17,
) -> Compilation:
    """The prediction for one SoC."""
    model = Model.load(model_of(script, inputs, weights, opset))
    return compile_model(model, [get_target(soc)])[0]


def table(
    script: str,
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Weight] | None = None,
    soc: str = "rk3588",
    opset: int = 17,
) -> list[str]:
    """Every predicted row as ``Op 1x2x3x4 -> 1x2x3x4`` (first input, first output)."""
    rows = compiled(script, inputs, weights, soc, opset).ops
    return [f"{row.op} {_text(row.input_shapes[0])} -> {_text(row.output_shapes[0])}" for row in rows]


def ops(
    script: str,
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Weight] | None = None,
    soc: str = "rk3588",
    opset: int = 17,
) -> list[str]:
    """The op of every predicted row."""
    return [row.op for row in compiled(script, inputs, weights, soc, opset).ops]


def ints(*numbers: int) -> np.ndarray:
    """An int64 constant."""
    return np.array(numbers, np.int64)


def scalar(number: float) -> np.ndarray:
    """A float constant of rank 0."""
    return np.array(number, np.float32)


def _text(shape: Sequence[int] | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape))
