"""DirectML's element-wise operators, as descriptors take them and as an ONNX front end reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from custom_ops.broadcast import numpy, same_shape, show
from ort_rknpu.graph import Op
from ort_rknpu.rules.backends.findings import (
    BackendPlacement,
    Findings,
    Inputs,
    check_same_type,
    is_own,
    judge,
    known_ranks,
    known_types,
    not_covered,
    onnx_operations,
)
from ort_rknpu.targets.backends.registry import BackendTarget, rows

_TEXTS = {
    "rank": "DimensionCount differs: A, B and Output must have the same one",
    "sizes": "Sizes differ: A, B and Output must have the same ones",
}
_ONNX_TEXTS = {"sizes": "sizes differ: strides cannot express this broadcast"}


@dataclass(frozen=True)
class Level:
    """What some operators take from one feature level on; no ``outputs`` means the inputs' type."""

    operators: tuple[str, ...]
    level: str
    ranks: tuple[int, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class BroadcastRule:
    """Which broadcast a profile has."""

    profile: str
    rule: str
    source: str


@dataclass(frozen=True)
class MinimumSize:
    """The smallest size a tensor descriptor takes."""

    value: int
    source: str


@cache
def _level(operator: str, level: str) -> Level | None:
    """The row of the highest feature level that is not above ``level``; None below the first one."""
    reached = [
        row
        for row in rows("directml", "levels", Level)
        if operator in row.operators and _number(row.level) <= _number(level)
    ]
    return max(reached, key=lambda row: _number(row.level), default=None)


def _number(level: str) -> tuple[int, ...]:
    return tuple(int(part) for part in level.split("_"))


def place(op: Op, target: BackendTarget) -> BackendPlacement:
    """The verdict on an ONNX node, or on a node of the ``directml`` domain."""
    operators = (op.op_type,) if is_own(op, target) else onnx_operations(op, target)
    levels = [row for operator in operators if (row := _level(operator, target.variant)) is not None]

    def check(findings: Findings, inputs: Inputs) -> None:
        for row in levels:
            _check_types(findings, row, inputs, op.outputs[0].dtype if op.outputs else None)
            _check_shapes(findings, row, inputs)

    return judge(op, target, check) if levels else not_covered(op, target)


def _check_types(findings: Findings, row: Level, inputs: Inputs, output: str | None) -> None:
    text = f"type not at this feature level ({row.level} is the row that counts)"
    if row.outputs and output is not None and output not in row.outputs:
        findings.refuse("output_type", text, output, ", ".join(row.outputs), row.source)
    types = known_types(findings, inputs, row.source)
    if types is None:
        return
    for dtype in dict.fromkeys(types):
        if dtype not in row.inputs:
            hint = _first_level_with(row.operators[0], dtype)
            findings.refuse("type", text, dtype, ", ".join(row.inputs), row.source, hint)
    check_same_type(findings, types, "types differ: A and B must have the same DataType")


def _first_level_with(operator: str, dtype: str) -> str:
    levels = [
        row.level for row in rows("directml", "levels", Level) if operator in row.operators and dtype in row.inputs
    ]
    return f"feature level {min(levels, key=_number)} takes it" if levels else "Cast the inputs to float32"


def _check_shapes(findings: Findings, row: Level, inputs: Inputs) -> None:
    profile = findings.target.profile
    rule = next(r for r in rows("directml", "broadcast", BroadcastRule) if r.profile == profile)
    shapes = known_ranks(findings, inputs, rule.source)
    if shapes is None:
        return
    a, b = shapes
    pads = rule.rule == "numpy"
    least, most = row.ranks
    for shape in dict.fromkeys(shapes):
        if len(shape) > most or (len(shape) < least and not pads):
            text = "DimensionCount not at this feature level"
            hint = "Reshape" if len(shape) > most else "Reshape, or go through an ONNX front end"
            allowed = f"up to {most}" if pads else f"{least}..{most}"
            findings.refuse("dimension_count", text, str(len(shape)), allowed, row.source, hint)
    smallest = rows("directml", "minimum_size", MinimumSize)[0]
    for shape in dict.fromkeys(shapes):
        if any(isinstance(dim, int) and dim < smallest.value for dim in shape):
            text = "a tensor descriptor takes no zero-length dimension"
            findings.refuse("zero_size", text, show(shape), f"{smallest.value} or more", smallest.source)
    if pads:
        findings.mismatches(numpy(a, b), _ONNX_TEXTS, rule.source)
        return
    full = numpy(a, b).shape
    hint = f"Expand both inputs to {show(full)}, or give the full sizes with zero strides" if full is not None else ""
    findings.mismatches(same_shape(a, b), _TEXTS, rule.source, hint)
