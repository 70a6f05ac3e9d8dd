"""A constant Mul and Add behind each other: which of them the toolkit makes one BatchNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import TensorProto, helper

from ort_rknpu.compiler import compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target

NORM = ["Sigmoid", "BatchNormalization"]


@pytest.mark.parametrize(
    ("scale", "bias", "order", "shape", "rows"),
    [
        ((1, 8, 1, 1), (1, 8, 1, 1), "Mul Add", (1, 8, 6, 6), NORM),
        ((8, 1, 1), (), "Mul Add", (1, 8, 6, 6), NORM),
        ((), (1, 8, 1, 1), "Mul Add", (1, 8, 6, 6), NORM),
        ((1,), (1,), "Mul Add", (1, 8, 6, 6), NORM),
        ((1, 8, 1, 1), (1, 8, 1, 1), "Div Add", (1, 8, 6, 6), NORM),
        ((1, 8, 1, 1), (1, 8, 1, 1), "Add Mul", (1, 8, 6, 6), ["Sigmoid", "Add", "Mul"]),
        ((6,), (6,), "Mul Add", (1, 8, 6, 6), ["Sigmoid", "Mul", "Add"]),
        ((1, 8, 6, 6), (1, 8, 6, 6), "Mul Add", (1, 8, 6, 6), ["Sigmoid", "Mul", "Add"]),
        ((16,), (16,), "Mul Add", (1, 6, 16), ["Reshape", "Sigmoid", "Mul", "Add", "Reshape"]),
    ],
)
def test_scale_then_bias_per_channel_of_rank_4_is_a_batch_normalization(
    scale: Sequence[int], bias: Sequence[int], order: str, shape: Sequence[int], rows: list[str]
) -> None:
    first, second = order.split()
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["t"]),
        helper.make_node(first, ["t", "scale"], ["u"]),
        helper.make_node(second, ["u", "bias"], ["y"]),
    ]
    constants = []
    for name, dims in (("scale", scale), ("bias", bias)):
        size = 1
        for dim in dims:
            size *= dim
        constants.append(helper.make_tensor(name, TensorProto.FLOAT, dims, [0.3 + i / 7 for i in range(size)]))
    graph = helper.make_graph(
        nodes,
        "affine",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (compiled,) = compile_model(Model.load(model), [get_target("rk3588")])
    assert [row.op for row in compiled.ops] == rows
