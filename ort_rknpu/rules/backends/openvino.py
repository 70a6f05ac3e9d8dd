"""OpenVINO's Less-1 and Greater-1 under each ``auto_broadcast``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from custom_ops.broadcast import Broadcast, Shape, numpy, pdpd, pdpd_runtime, same_shape
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

_RULES: dict[str, Callable[[Shape, Shape, int], Broadcast]] = {
    "none": lambda a, b, _: same_shape(a, b),
    "numpy": lambda a, b, _: numpy(a, b),
    "pdpd": pdpd,
    "pdpd-runtime": pdpd_runtime,
}
_TEXTS = {
    "none": {
        "rank": "rank differs: auto_broadcast none wants equal shapes",
        "sizes": "sizes differ: auto_broadcast none wants equal shapes",
    },
    "numpy": {"sizes": "sizes differ: aligned at the last dimension they must be equal, or one of them 1"},
    "pdpd": {
        "rank": "B has a higher rank than A: A never grows under pdpd",
        "sizes": "B is no run of A's dimensions: A never grows under pdpd",
        "axis": "B reaches beyond A from this axis on",
        "execution": "the shape is inferred, but the CPU plugin aligns B at A's last dimension whatever the axis says",
    },
}


@dataclass(frozen=True)
class Types:
    """Element types that some variants take, or refuse."""

    variants: tuple[str, ...]
    allowed: bool
    types: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Mode:
    """One broadcast mode and the words of ``auto_broadcast`` that ask for it."""

    mode: str
    spellings: tuple[str, ...]
    source: str


@cache
def _modes() -> dict[str, Mode]:
    return {row.mode: row for row in rows("openvino", "modes", Mode)}


def place(op: Op, target: BackendTarget) -> BackendPlacement:
    """The verdict on an ONNX node under the target's broadcast mode, or on a node of the ``openvino`` domain.

    A node of that domain brings its own ``auto_broadcast`` and ``axis``; of the target it takes only whether pdpd is
    the specification's or the runtime's.
    """
    own = is_own(op, target) and op.op_type in ("Less", "Greater")

    def check(findings: Findings, inputs: Inputs) -> None:
        asked = _own_mode(findings, op, target) if own else (target.variant, dict(target.options).get("axis", -1))
        _check_types(findings, inputs, target.variant)
        if asked is not None:
            _check_shapes(findings, inputs, *asked)

    return judge(op, target, check) if own or onnx_operations(op, target) else not_covered(op, target)


def _own_mode(findings: Findings, op: Op, target: BackendTarget) -> tuple[str, int] | None:
    word: Any = op.attr("auto_broadcast", "numpy")
    axis: Any = op.attr("axis", -1)
    mode = next((row.mode for row in _modes().values() if str(word).lower() in row.spellings), None)
    if mode is None:
        known = ", ".join(spelling for row in _modes().values() for spelling in row.spellings)
        source = _modes()["numpy"].source
        findings.refuse("auto_broadcast", "the broadcast mode must be known", str(word), known, source)
        return None
    if mode != "pdpd":
        return mode, -1
    if not isinstance(axis, int):
        findings.refuse("axis", "the axis must be an integer", str(axis), "-1 or more", _modes()["pdpd"].source)
        return None
    return ("pdpd-runtime" if target.variant == "pdpd-runtime" else "pdpd"), axis


def _check_types(findings: Findings, inputs: Inputs, variant: str) -> None:
    table = [row for row in rows("openvino", "types", Types) if variant in row.variants]
    allowed = next(row for row in table if row.allowed)
    types = known_types(findings, inputs, allowed.source)
    if types is None:
        return
    for dtype in dict.fromkeys(types):
        row = next((row for row in table if dtype in row.types), None)
        if row is None:
            text = "nothing is known about this type"
            findings.leave_open("type", text, dtype, ", ".join(allowed.types), allowed.source)
        elif not row.allowed:
            text = "type not taken"
            findings.refuse("type", text, dtype, ", ".join(allowed.types), row.source)
    check_same_type(findings, types, "types differ: both inputs must have the same element type")


def _check_shapes(findings: Findings, inputs: Inputs, mode: str, axis: int) -> None:
    source = _modes()[mode].source
    shapes = known_ranks(findings, inputs, source)
    if shapes is None:
        return
    found = _RULES[mode](*shapes, axis)
    hint = "auto_broadcast numpy takes it" if mode != "numpy" and numpy(*shapes).shape is not None else ""
    findings.mismatches(found, _TEXTS["pdpd" if mode.startswith("pdpd") else mode], source, hint)
