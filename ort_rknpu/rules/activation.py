"""Activations with parameters, and Pow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules.broadcast import aligned
from ort_rknpu.rules.facts import Values, base_values, dims, exact, given, is_scalar, number, shape_text, size
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit

_DEFAULT_ALPHA = {"HardSigmoid": 0.2, "Elu": 1.0, "LeakyRelu": 0.01}


def alpha_values(op: Op) -> Values:
    """``alpha`` and ``beta``."""
    values = base_values(op)
    values["alpha"] = exact(op.attr("alpha", _DEFAULT_ALPHA[op.op_type]))
    values["beta"] = exact(op.attr("beta", 0.5))
    return values


def clip_values(op: Op) -> Values:
    """``min`` and ``max``; an absent bound is infinite."""
    values = base_values(op)
    for index, (name, absent) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
        values[name] = _bound(op, index, name, absent)
    return values


def _bound(op: Op, index: int, name: str, absent: float) -> Any:
    stated, items = given(op, index, name)
    if not stated:
        return absent
    return items[0] if items and len(items) == 1 else None


def pow_values(op: Op) -> Values:
    """The exponent and its number of elements."""
    values = base_values(op)
    values["exponent"] = number(op.input(1))
    values["exponent_size"] = size(op.input(1))
    return values


def slope(case: Case, limit: Limit) -> Iterator[Finding]:
    """The slope is a constant: one element, or one per channel (reading 42)."""
    value, data = case.op.input(1), case.op.input(0)
    if value is None or data is None:
        return
    allowed = "a constant of one element or one per channel"
    required = "the slope must be a constant for the whole tensor or for each channel"
    if not value.constant:
        yield Finding("a run-time input", allowed, "make the slope an initializer", text=required)
        return
    if is_scalar(value):
        return
    part = None if data.rank is None else aligned(value, data.rank)
    channel = dims(data)[1]
    actual = f"{shape_text(value)} for {shape_text(data)}"
    if part is None or None in part or channel is None:
        yield Finding(actual, allowed, unknown=data.rank is None or data.rank <= 4, text=required)
    elif (part[0], part[2], part[3]) != (1, 1, 1) or part[1] != channel:
        yield Finding(actual, allowed, f"a slope of shape [{channel}, 1, 1] passes", text=required)
