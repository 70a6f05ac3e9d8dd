"""Measured placement: each limit on both of its sides."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.measured import place
from ort_rknpu.targets.measurements import measured_rules
from ort_rknpu.targets.socs import TOOLKITS, get_target

Shape = tuple[int, ...]


def op(op_type: str, inputs: list[Shape | np.ndarray | None], output: Shape, **attributes: Any) -> Op:
    values: list[Value | None] = []
    for index, item in enumerate(inputs):
        if isinstance(item, np.ndarray):
            values.append(Value(f"c{index}", item.shape, str(item.dtype), const=item))
        else:
            values.append(None if item is None else Value(f"x{index}", item, "float32"))
    return Op(op_type, values, [Value("y", output, "float32")], attributes)


def device(candidate: Op, soc: str) -> str:
    """``npu``, or ``cpu`` for a row off the NPU, whether a CPU kernel exists or not."""
    found = place(candidate, get_target(soc)).device
    return "cpu" if found == "unsupported" else found


X = (1, 16, 32, 32)
INT = np.int64
CASES = [
    (op("Cos", [X], X), {"rk3588": "cpu"}),
    (op("Conv", [X, (16, 16, 3, 3)], X), {"rk3588": "npu", "rv1103b": "npu"}),
    (op("NeverSeen", [X], X), {"rk3588": "cpu"}),
    (op("Add", [X, X], X), {"rk3566": "npu"}),
    (op("Add", [(2, 4, 5, 6, 7)] * 2, (2, 4, 5, 6, 7)), {"rk3566": "cpu"}),
    (op("Div", [X, X], X), {"rk3588": "npu", "rv1106": "cpu"}),
    (op("Div", [(1, 64, 1, 1)] * 2, (1, 64, 1, 1)), {"rk3588": "cpu"}),
    (op("AveragePool", [X], X, kernel_shape=[3, 3], pads=[1] * 4), {"rk3588": "cpu", "rv1106": "cpu"}),
    (op("AveragePool", [X], X, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), {"rk3588": "npu"}),
    (op("AveragePool", [(1, 16, 33, 33)], (1, 16, 17, 17), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
     {"rk3588": "cpu", "rv1106": "npu"}),
    (op("MaxPool", [X], X, kernel_shape=[8, 1]), {"rk3588": "npu", "rv1103b": "npu"}),
    (op("MaxPool", [X], X, kernel_shape=[9, 1]), {"rk3588": "cpu", "rv1103b": "npu"}),
    (op("Pow", [X, np.array([2.0], "f")], X), {"rk3588": "npu", "rv1106": "npu", "rv1103b": "cpu"}),
    (op("Pow", [X, np.array([0.5], "f")], X), {"rk3588": "npu", "rv1106": "cpu"}),
    (op("Pow", [X, np.array([2.5], "f")], X), {"rk3588": "cpu"}),
    (op("Pow", [X, X], X), {"rk3588": "cpu"}),
    (op("Sqrt", [X], X), {"rk3588": "npu", "rv1106": "cpu"}),
    (op("Max", [X, (1, 16, 1, 1)], X), {"rk3588": "npu"}),
    (op("Max", [X, (1,)], X), {"rk3588": "cpu"}),
    (op("Greater", [X, X], X), {"rk3576": "npu", "rv1126b": "npu", "rk3588": "cpu"}),
    (op("Resize", [X, None, None], (1, 16, 64, 96), mode="linear"), {"rk3588": "npu"}),
    (op("Resize", [X, None, None], (1, 16, 48, 64), mode="linear"), {"rk3588": "cpu", "rk3562": "npu"}),
    (op("Resize", [X, None, None], (1, 16, 48, 48), mode="nearest"), {"rk3588": "npu"}),
    (op("Slice", [X, *(np.array([v], INT) for v in (0, 32, 2, 1))], X), {"rk3588": "npu"}),
    (op("Slice", [X, *(np.array([v], INT) for v in (0, 32, 2, 2))], (1, 16, 16, 32)), {"rk3588": "cpu"}),
    (op("Slice", [(1, 32, 1, 1), *(np.array([v], INT) for v in (0, 32, 1, 2))], (1, 16, 1, 1)),
     {"rk3588": "cpu", "rk3562": "npu", "rv1106": "npu"}),
    (op("Slice", [(1, 24, 1, 1), *(np.array([v], INT) for v in (0, 24, 1, 2))], (1, 12, 1, 1)),
     {"rk3562": "npu", "rv1106": "cpu"}),
    (op("Gather", [X, np.array([0, 5], INT)], (1, 16, 2, 32), axis=2), {"rk3588": "npu", "rv1106": "cpu"}),
    (op("Gather", [X, (2,)], (1, 16, 2, 32), axis=2), {"rk3588": "cpu"}),
    (op("Pad", [X, np.array([0, 0, 1, 1, 0, 0, 1, 1], INT)], (1, 16, 34, 34)), {"rk3588": "npu", "rv1103b": "npu"}),
    (op("Pad", [X, np.array([0, 0, 1, 1, 0, 0, 1, 1], INT)], (1, 16, 34, 34), mode="reflect"),
     {"rk3588": "npu", "rv1103b": "cpu"}),
    (op("Pad", [X, np.array([1, 0, 0, 0, 0, 0, 0, 0], INT)], (2, 16, 32, 32)), {"rk3588": "npu"}),
    (op("Tile", [X, np.array([1, 1, 2, 1], INT)], (1, 16, 64, 32)), {"rk3588": "npu"}),
    (op("Tile", [X, np.array([1, 1, 2, 2], INT)], (1, 16, 64, 64)), {"rk3588": "cpu"}),
    (op("Expand", [(1, 16, 1, 1)], X), {"rk3588": "npu"}),
    (op("Expand", [X], (2, 16, 32, 32)), {"rk3588": "cpu"}),
    (op("exSoftmax13", [X], X, axis=3), {"rk3566": "cpu", "rk3588": "npu", "rv1103b": "cpu"}),
    (op("exSoftmax13", [(1, 2, 2, 8193)], (1, 2, 2, 8193), axis=3), {"rk3588": "cpu", "rk3562": "npu"}),
    (op("exNorm", [X], X, axes=[1]), {"rk3588": "npu", "rv1106": "cpu", "rk2118": "cpu"}),
    (op("GRU", [(5, 1, 8)], (5, 1, 1, 8)), {"rk3588": "npu", "rk3576": "cpu"}),
    (op("LSTM", [(5, 1, 8)], (5, 1, 1, 8)), {"rk3588": "npu", "rv1103b": "cpu"}),
    (op("Transpose", [(1, 16, 8, 12)], (1, 12, 8, 16), perm=[0, 3, 2, 1]), {"rk3566": "npu", "rk3588": "npu"}),
    (op("Transpose", [(1, 15, 8, 12)], (1, 12, 8, 15), perm=[0, 3, 2, 1]), {"rk3566": "cpu", "rk3588": "npu"}),
    (op("Transpose", [(1, 12, 128, 64)], (1, 128, 12, 64), perm=[0, 2, 1, 3]), {"rk3588": "npu", "rk3562": "npu"}),
    (op("Transpose", [(1, 12, 196, 64)], (1, 196, 12, 64), perm=[0, 2, 1, 3]), {"rk3588": "cpu", "rk3562": "npu"}),
    (op("Pad", [(1, 12, 8, 8), np.array([0, 0, 1, 1, 0, 0, 1, 1], INT)], (1, 12, 10, 10)),
     {"rk3588": "cpu", "rk3566": "npu", "rk2118": "npu", "rv1103b": "npu"}),
    (op("Pad", [(1, 12, 8, 8), np.array([0, 0, 1, 1, 0, 0, 1, 1], INT)], (1, 12, 10, 10), mode="edge"),
     {"rk3588": "npu"}),
    (op("Pad", [X, np.array([0, 8, 1, 1, 0, 0, 1, 1], INT)], (1, 24, 34, 34)), {"rk3588": "cpu"}),
    (op("Pad", [X, np.array([0, 0, 1, 1, 0, 8, 1, 1], INT)], (1, 24, 34, 34)), {"rk3588": "npu", "rk2118": "cpu"}),
    (op("Pad", [X, np.array([1, 0, 0, 0, 0, 0, 0, 0], INT)], (2, 16, 32, 32), mode="edge"), {"rk3588": "cpu"}),
    (op("Tile", [(1, 8, 9, 11), np.array([1, 2, 1, 1], INT)], (1, 16, 9, 11)),
     {"rk3588": "npu", "rv1106": "cpu", "rv1103b": "npu"}),
    (op("Tile", [(1, 13, 9, 11), np.array([1, 2, 1, 1], INT)], (1, 26, 9, 11)), {"rk3588": "cpu", "rv1103b": "cpu"}),
    (op("Tile", [(1, 13, 9, 11), np.array([1, 1, 1, 2], INT)], (1, 13, 9, 22)), {"rk3588": "npu", "rv1103b": "npu"}),
    (op("Mul", [(3, 5, 12, 7), np.ones((3, 1, 1, 1), "f")], (3, 5, 12, 7)),
     {"rk3588": "npu", "rk2118": "cpu", "rv1103b": "cpu"}),
    (op("Mul", [(3, 8, 12, 8), np.ones((3, 8, 1, 1), "f")], (3, 8, 12, 8)), {"rk2118": "npu", "rv1103b": "npu"}),
    (op("GlobalAveragePool", [(1, 77, 1, 1)], (1, 77, 1, 1)), {"rk3588": "npu", "rk2118": "cpu", "rv1103b": "cpu"}),
    (op("Max", [X, X, X], X), {"rk3588": "npu"}),
    (op("MaxPool", [X], X, kernel_shape=[3, 3], pads=[1] * 4), {"rk3588": "npu"}),
    (op("Pad", [X, np.array([0, 0, -1, 0, 0, 0, 0, 0], INT)], (1, 16, 31, 32)), {"rk3588": "cpu"}),
    (op("Sub", [np.ones((1, 16, 32, 32), "f"), X], X), {"rk3588": "npu"}),
    (op("Sub", [np.ones((1, 1, 32, 32), "f"), X], X), {"rk3588": "cpu"}),
    (op("exSoftmax13", [(1, 2, 256, 256)], (1, 2, 256, 256), axis=3), {"rk3588": "npu", "rv1106": "cpu"}),
    (op("exSoftmax13", [(1, 8, 128, 128)], (1, 8, 128, 128), axis=3), {"rk3588": "npu", "rv1106": "npu"}),
    (op("exSoftmax13", [(1, 2, 400, 400)], (1, 2, 400, 400), axis=3), {"rk3588": "cpu", "rk3576": "npu"}),
    (op("exSoftmax13", [(1, 16, 4, 2048)], (1, 16, 4, 2048), axis=1), {"rk2118": "npu", "rv1103b": "npu"}),
    (op("exSoftmax13", [(1, 16, 4, 2100)], (1, 16, 4, 2100), axis=1),
     {"rk2118": "cpu", "rv1103b": "cpu", "rk3588": "npu"}),
    (op("Expand", [(1, 6, 1, 7)], (4, 6, 20, 7)), {"rk3588": "npu"}),
    (op("Slice", [(2, 25, 12, 10, 32), *(np.array([v], INT) for v in (16, 19, 1))], (2, 3, 12, 10, 32)),
     {"rk3588": "npu"}),
]  # fmt: skip


@pytest.mark.parametrize(("candidate", "expected"), CASES, ids=[f"{i}-{c[0].op_type}" for i, c in enumerate(CASES)])
def test_device_on_both_sides_of_each_limit(candidate: Op, expected: dict[str, str]) -> None:
    for soc, where in expected.items():
        placement = place(candidate, get_target(soc))
        assert (placement.device == "npu") == (where == "npu"), soc
        assert bool(placement.clauses) == (where != "npu")
        for clause in placement.clauses[:1]:
            assert clause.id.startswith(f"{soc}.{candidate.op_type}.")
            assert clause.source.startswith("measured 2.3.2: ")


def test_a_row_off_the_npu_is_unsupported_where_the_soc_has_no_cpu_kernel() -> None:
    softmax = op("exSoftmax13", [X], X, axis=0)
    assert {soc: place(softmax, get_target(soc)).device for soc in ("rk3566", "rv1103b", "rk2118")} == {
        "rk3566": "cpu",
        "rv1103b": "cpu",
        "rk2118": "unsupported",
    }
    assert place(op("Selu", [X], X), get_target("rk3588")).device == "unsupported"


def reshape(before: Shape, after: Shape, producer: str | None = None, reader: str | None = None) -> Op:
    source = Value("x", before, "float32")
    if producer:
        Op(producer, [Value("i", before, "float32")], [source])
    result = Value("y", after, "float32")
    made = Op("Reshape", [source], [result])
    if reader:
        Op(reader, [result], [Value("o", after, "float32")])
    return made


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (reshape((1, 64, 1, 1), (1, 64), "Conv"), {"rk3566": "npu", "rk3588": "npu"}),
        (reshape((1, 50, 1, 1), (1, 50), "Conv"), {"rk3566": "cpu", "rk3588": "cpu", "rk3562": "npu"}),
        (reshape((1, 20, 64), (1, 20, 1, 64), None, "Relu"), {"rk3566": "cpu", "rk3588": "npu"}),
        (reshape((1, 20, 64), (1, 20, 1, 64), None, "Cos"), {"rk3566": "npu", "rk3588": "npu"}),
        (reshape((1, 20, 50), (1, 20, 1, 50), None, "Relu"), {"rk3588": "cpu", "rk3562": "npu"}),
        (reshape((4, 12, 1, 256), (1, 48, 1, 256), "exMatMul", "Conv"), {"rk3566": "npu"}),
        (reshape((4, 15, 1, 37), (1, 60, 1, 37), "exMatMul", "Conv"), {"rk3566": "cpu", "rk3588": "npu"}),
        (reshape((1, 16, 32, 32), (1, 16, 1, 1024)), {"rk3566": "cpu", "rk3588": "npu"}),
    ],
)
def test_reshape_follows_the_packed_layout_and_the_neighbours(made: Op, expected: dict[str, str]) -> None:
    assert {soc: device(made, soc) for soc in expected} == expected


@pytest.mark.parametrize("op_type", ["Reshape", "Add", "Sub", "Mul", "Concat"])
def test_integers_are_on_the_cpu(op_type: str) -> None:
    made = op(op_type, [(1, 1, 8, 8)] * (1 if op_type == "Reshape" else 2), (1, 1, 8, 8))
    assert device(made, "rk3562") == "npu"
    for value in made.inputs:
        value.dtype = "int64"  # type: ignore[union-attr]
    assert device(made, "rk3562") == "cpu"


def test_a_shape_that_is_not_known_gives_unknown_and_names_it() -> None:
    candidate = Op("Div", [Value("x", ("N", 16, "H", "W"), "float32")] * 2, [Value("y", None, "float32")])
    placement = place(candidate, get_target("rk3588"))
    assert placement.device == "unknown"
    assert "pixels" in placement.clauses[0].text


BIG = (1, 8, 2, 9000)
OVERFLOWS = [
    (op("Conv", [X, (16, 16, 3, 3)], (1, 16, 4, 4), strides=[9, 9]), {"rk3588": "stride", "rk2118": "stride"}),
    (op("Conv", [X, (16, 16, 3, 3)], (1, 16, 4, 4), strides=[8, 8]), {"rk3588": "", "rk2118": ""}),
    (op("Conv", [X, (16, 16, 3, 3)], (1, 16, 5, 5), strides=[7, 7]), {"rk3588": "", "rv1106": ""}),
    (
        op("ConvTranspose", [X, (16, 16, 9, 9)], (1, 16, 288, 288), kernel_shape=[9, 9], strides=[9, 9]),
        {"rk3588": "", "rk3562": "stride"},
    ),
    (op("ConvTranspose", [X, (16, 16, 8, 8)], (1, 16, 256, 256), kernel_shape=[8, 8], strides=[8, 8]), {"rk3562": ""}),
    (
        op("ConvTranspose", [X, (16, 16, 32, 32)], (1, 16, 64, 64), kernel_shape=[32, 32], strides=[2, 2]),
        {"rk3588": "kernel", "rk3576": ""},
    ),
    (
        op("ConvTranspose", [X, (16, 16, 31, 31)], (1, 16, 64, 64), kernel_shape=[31, 31], strides=[2, 2]),
        {"rk3588": ""},
    ),
    (op("Add", [BIG, (1, 8, 2, 1)], BIG), {"rk3588": "width", "rk2118": ""}),
    (op("Add", [BIG, BIG], BIG), {"rk3588": ""}),
    (op("Add", [(1, 8, 2, 8192), (1, 8, 2, 1)], (1, 8, 2, 8192)), {"rk3588": ""}),
    (op("Add", [(1, 8, 9000, 2), (1, 8, 1, 2)], (1, 8, 9000, 2)), {"rk3576": "height"}),
    (op("Div", [BIG, (1, 8, 1, 1)], BIG), {"rk3562": "width"}),
    (op("MaxPool", [(1, 8, 8, 8192)], (1, 8, 8, 8192), kernel_shape=[1, 1]), {"rv1103b": "width", "rk3588": ""}),
    (op("MaxPool", [(1, 8, 8, 8191)], (1, 8, 8, 8191), kernel_shape=[1, 1]), {"rv1103b": ""}),
]


@pytest.mark.parametrize(("candidate", "expected"), OVERFLOWS)
def test_what_does_not_fit_the_registers_is_unsupported(candidate: Op, expected: dict[str, str]) -> None:
    for soc, limit in expected.items():
        placement = place(candidate, get_target(soc))
        assert placement.overflows == bool(limit), soc
        ids = [f"{soc}.{candidate.op_type}.{limit}.overflow"] if limit else []
        assert [clause.id for clause in placement.clauses] == ids
        assert placement.device == ("unsupported" if limit else "npu")


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_every_limit_reads_values_that_exist(toolkit: str) -> None:
    from ort_rknpu.rules.compiled import CompiledValues

    known = set(CompiledValues(CASES[0][0], get_target("rk3588")))
    rules = measured_rules(toolkit)
    limits = [limit for rule in rules.ops.values() for limit in rule.limits]
    limits += [limit for found in rules.overflow.values() for limit in found]
    for limit in limits:
        for expression in (limit.require, limit.when):
            assert expression is None or set(expression.names) <= known, limit.source
        assert json.dumps(dict(limit.params))
