"""What chapter 5 says about a model's inputs and outputs."""

from __future__ import annotations

import bisect
import math
from typing import Any

import pytest

from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.rules.io_limits import TensorLimits, io_limits
from ort_rknpu.targets.io_rules import load_io
from ort_rknpu.targets.ruledata import read_json
from ort_rknpu.targets.socs import get_target, socs

GROUPS = {soc.group: soc.name for soc in socs().values()}


def limits(
    shape: tuple[Any, ...], soc: str, precision: str | None = None, op_type: str = "Conv", dtype: str = "float32"
) -> tuple[TensorLimits, TensorLimits]:
    """Of the input and the output of a model of one op."""
    image, result = Value("image", shape, dtype), Value("result", shape, dtype)
    weight = Value("w", (3, 3, 1, 1), "float32", constant=True)
    op = Op(op_type, [image, weight], [result])
    found = io_limits(Graph([image, weight], [result], [op]), get_target(soc, precision))
    assert [row.direction for row in found] == ["input", "output"]
    return found[0], found[1]


@pytest.mark.parametrize(
    ("soc", "precision", "align"),
    [
        ("rk3566", "int8", 8),
        ("rk3566", "fp16", 4),
        ("rk3588", "int8", 16),
        ("rk3588", "fp16", 8),
        ("rk3562", "int8", 16),
        ("rk3576", "fp16", 8),
        ("rk2118", "fp16", 4),
        ("rv1106", "int8", 16),
        ("rv1103b", "int8", 8),
    ],
)
def test_width_alignment_of_zero_copy_images(soc: str, precision: str, align: int) -> None:
    assert limits((1, 3, 8, 8), soc, precision)[0].width_align == align
    assert limits((1, 5, 8, 8), soc, precision)[0].width_align == 1


@pytest.mark.parametrize(
    ("soc", "precision", "conv", "other"),
    [
        ("rk3566", "int8", 16, 8),
        ("rk3566", "fp16", 8, 4),
        ("rk3588", "int8", 32, 16),
        ("rk3588", "fp16", 16, 8),
        ("rk2118", "fp16", 8, 4),
        ("rv1106", "int8", 32, 16),
        ("rv1106b", "int8", 8, 8),
    ],
)
def test_channel_alignment_depends_on_the_last_layer(soc: str, precision: str, conv: int, other: int) -> None:
    assert limits((1, 3, 8, 8), soc, precision)[1].layouts["NC1HWC2"] == (conv, 4)
    assert limits((1, 3, 8, 8), soc, precision, op_type="Relu")[1].layouts["NC1HWC2"] == (other, 4)


@pytest.mark.parametrize(
    ("soc", "precision", "converted"),
    [
        ("rk3588", "int8", {"uint8": "npu", "int8": "npu", "float16": "cpu", "other": "cpu"}),
        ("rk3588", "fp16", {"uint8": "cpu", "int8": "cpu", "float16": "cpu", "other": "cpu"}),
        ("rv1106", "int8", {"uint8": "npu"}),
        ("rv1103b", "int8", {"uint8": "npu", "int8": "npu"}),
        ("rk2118", "fp16", {"float16": "cpu"}),
    ],
)
def test_who_converts_the_input(soc: str, precision: str, converted: dict[str, str]) -> None:
    assert limits((1, 3, 8, 8), soc, precision)[0].converted_by == converted


def test_a_kind_of_tensor_that_no_row_lists_is_a_clause() -> None:
    source, result = limits((1, 8), "rv1106")
    assert [clause.id for clause in source.clauses] == ["rv1106.input.kind"]
    assert [clause.id for clause in result.clauses] == ["rv1106.output.kind"]
    assert source.clauses[0].source == "documented 5.1.3"
    assert result.clauses[0].source == "documented 5.2.3"
    assert limits((1, 8), "rk3588")[0].clauses == ()
    assert limits((1, 8), "rk3588", dtype="int64")[0].clauses == ()
    assert [clause.id for clause in limits((1, 8, 4, 4), "rk3588", dtype="int64")[0].clauses] == ["rk3588.input.kind"]


def test_an_unknown_rank_is_said_to_be_unknown() -> None:
    image = Value("image", None, "float32")
    found = io_limits(Graph([image], [image]), get_target("rk3588"))
    assert [clause.id for row in found for clause in row.clauses] == ["rk3588.input.unknown", "rk3588.output.unknown"]


def test_limits_are_plain_values() -> None:
    source, result = limits((1, 3, 8, 8), "rk3588")
    assert source.to_dict()["converted_by"]["uint8"] == "cpu"
    assert result.to_dict()["source"] == "documented 5.2.2"


def holds(conditions: list[str], values: dict[str, Any], width: int) -> bool:
    return all(eval(text, {}, {**values, "width": width}) for text in conditions)


WIDTHS = range(1, 9000)


@pytest.mark.parametrize("group", GROUPS)
def test_the_width_limit_of_every_row_on_either_side(group: str) -> None:
    """The widest image that each row lets a 1x1 or 3x3 convolution read, worked out by Python itself."""
    table = read_json("io.json")["input"][group]["rows"]
    assert len(load_io(group).inputs) == len(table)
    for row, rule in zip(table, load_io(group).inputs):
        if "width" not in row:
            assert rule.width is None
            continue
        assert rule.width is not None
        for kind, factor in row["width"]["N"].items():
            for kernel in (1, 3, 12):
                values: dict[str, Any] = {"dilated_kernel_h": kernel, "dilated_kernel_w": kernel}
                values["N"] = eval(factor, {"ceil": math.ceil, "max": max}, dict(values))
                widest = bisect.bisect(
                    WIDTHS, False, key=lambda width: not holds(row["width"]["require"], values, width)
                )
                assert widest > 0, (kind, kernel)
                values["N"] = rule.width.factor[kind](values)
                for width, expected in ((widest, True), (widest + 1, False)):
                    assert all(condition({**values, "width": width}) for condition in rule.width.require) is expected
