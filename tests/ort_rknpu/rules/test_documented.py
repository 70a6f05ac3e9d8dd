"""Documented verdicts of whole ONNX models: the NPU list, then the CPU list, then nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_rknpu
from ort_rknpu.targets.socs import socs


def model(
    op_type: str, shape: list[Any], *constants: np.ndarray | None, opset: int = 17, domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """Relu -> the op -> Relu; constants are the op's further inputs, None for an omitted one."""
    names = ["" if array is None else f"c{index}" for index, array in enumerate(constants)]
    initializers = [numpy_helper.from_array(a, n) for a, n in zip(constants, names) if a is not None]
    nodes = [
        helper.make_node("Relu", ["x"], ["before"], "first"),
        helper.make_node(op_type, ["before", *names], ["after"], "node", domain=domain, **attributes),
        helper.make_node("Relu", ["after"], ["y"], "last"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info("y")],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def verdict(proto: onnx.ModelProto, soc: str = "rk3588", precision: str | None = None) -> tuple[str, list[str]]:
    node = ort_rknpu.check(proto, soc, precision, rules="documented").targets[0].node("node")
    assert node is not None
    return node.verdict, [clause.id for clause in node.clauses]


def floats(*items: float) -> np.ndarray:
    return np.array(items, np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def resize(*scales: float, **attributes: Any) -> onnx.ModelProto:
    return model("Resize", [1, 8, 20, 20], None, floats(1, 1, *scales), **{"mode": "linear", **attributes})


@pytest.mark.parametrize(
    ("soc", "expected", "ids"),
    [
        ("rk3588", "cpu", ["rk3588.Resize.scale"]),
        ("rv1106", "unsupported", ["rv1106.Resize.scale", "rv1106.Resize.cpu_soc"]),
        ("rk2118", "unsupported", ["rk2118.Resize.scale", "rk2118.Resize.cpu_soc"]),
    ],
)
def test_a_fractional_resize_leaves_the_npu(soc: str, expected: str, ids: list[str]) -> None:
    assert verdict(resize(1.5, 1.5), soc) == (expected, ids)
    assert verdict(resize(2, 2), soc) == ("npu", [])


def test_a_clause_says_what_is_and_what_would_pass() -> None:
    report = ort_rknpu.check(resize(1.5, 1.5), "rk3588", rules="documented")
    node = report.targets[0].node("node")
    assert node is not None
    clause = node.clauses[0]
    assert (clause.actual, clause.allowed, clause.source) == ("1.5", "integer 2..8", "documented 3.2.54")
    assert clause.hint == "scale 2 would pass"
    assert "reading 39" in clause.text


@pytest.mark.parametrize(
    ("proto", "soc", "expected", "ids"),
    [
        (model("MaxPool", [1, 8, 20, 20], kernel_shape=[7, 7]), "rk3588", "npu", []),
        (
            model("MaxPool", [1, 8, 20, 20], kernel_shape=[9, 7]),
            "rk3588",
            "cpu",
            ["rk3588.MaxPool.kernel_h"],
        ),
        (
            model("AveragePool", [1, 8, 20, 20], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            "rk3588",
            "cpu",
            ["rk3588.AveragePool.count_include_pad"],
        ),
        (model("Transpose", [1, 8, 16, 24], perm=[0, 2, 3, 1]), "rk3588", "npu", []),
        (
            model("Transpose", [1, 8, 16, 24], perm=[0, 2, 3, 1]),
            "rk3566",
            "cpu",
            ["rk3566.Transpose.perm"],
        ),
        (model("Softmax", [1, 8, 16, 24], axis=1), "rk3588", "npu", []),
        (model("Softmax", [1, 8], opset=11), "rv1106", "npu", []),
        (model("Softmax", [1, 8, 16, 24], axis=1), "rk3566", "cpu", ["rk3566.Softmax.npu_entry"]),
        (
            model("Softmax", [1, 8, 15, 24]),
            "rk3588",
            "cpu",
            ["rk3588.Softmax.transpose_before_1", "rk3588.Softmax.transpose_behind_1"],
        ),
        (model("Pad", [1, 8, 16, 24], ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"), "rk3588", "npu", []),
        (
            model("Pad", [1, 8, 16, 24], ints(0, 0, 1, 1, 0, 0, 1, 1), mode="edge"),
            "rk3588",
            "cpu",
            ["rk3588.Pad.mode"],
        ),
        (
            model("Slice", [1, 8, 16, 24], ints(0), ints(16), ints(2), ints(2)),
            "rk3588",
            "cpu",
            ["rk3588.Slice.steps"],
        ),
        (model("Pow", [1, 8], floats(2)), "rk3588", "npu", []),
        (model("Pow", [1, 8], floats(2.5)), "rk3588", "cpu", ["rk3588.Pow.exponent"]),
        (model("Clip", [1, 8], floats(0)[0], floats(6)[0]), "rk3588", "npu", []),
        (model("Clip", [1, 8], floats(-1)[0], floats(6)[0]), "rk3588", "cpu", ["rk3588.Clip.min"]),
        (model("Erf", [1, 8]), "rk3588", "cpu", ["rk3588.Erf.npu_entry"]),
        (model("Selu", [1, 8]), "rk3588", "unsupported", ["rk3588.Selu.npu_entry", "rk3588.Selu.cpu_entry"]),
        (model("LeakyRelu", [1, 8], alpha=0.3), "rk2118", "npu", []),
        (model("Relu", [1, 2, 2, 2, 2]), "rk3588", "unsupported", ["rk3588.Relu.rank", "rk3588.Relu.cpu_entry"]),
    ],
)
def test_the_verdict_of_one_node(proto: onnx.ModelProto, soc: str, expected: str, ids: list[str]) -> None:
    assert verdict(proto, soc) == (expected, ids)


def test_div_is_a_float16_op() -> None:
    proto = model("Div", [1, 8, 4, 4], floats(3)[0])
    assert verdict(proto, "rk3588", "fp16") == ("npu", [])
    assert verdict(proto, "rk3588", "int8") == ("cpu", ["rk3588.Div.dtype"])
    assert verdict(proto, "rv1106") == ("cpu", ["rv1106.Div.dtype"])


@pytest.mark.parametrize("op_type", ["Softmax", "Transpose"])
def test_unknown_sizes_are_unknown_and_named(op_type: str) -> None:
    attributes = {"perm": [0, 2, 3, 1]} if op_type == "Transpose" else {"axis": 3}
    proto = model(op_type, [1, 8, "height", 24], **attributes)
    node = ort_rknpu.check(proto, "rk3588", rules="documented").targets[0].node("node")
    assert node is not None
    assert node.verdict == "unknown"
    assert all("height" in clause.actual for clause in node.clauses)
    report = ort_rknpu.check(proto, "rk3588", rules="documented", shapes={"x": [1, 8, 16, 24]})
    assert report.targets[0].nodes[1].verdict == "npu"


def test_an_op_of_another_domain_is_in_no_list() -> None:
    proto = model("Relu", [1, 8], domain="com.example")
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    assert verdict(proto)[1] == ["rk3588.Relu.npu_entry", "rk3588.Relu.cpu_entry"]


def test_every_soc_answers_with_ids_of_its_own() -> None:
    report = ort_rknpu.check(resize(1.5, 3), "all", rules="documented")
    for target in report.targets:
        for node in target.nodes:
            assert all(clause.id.startswith(f"{target.soc}.") for clause in node.clauses)
    assert [target.soc for target in report.targets] == list(socs())
