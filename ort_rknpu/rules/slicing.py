"""Slice: unit steps, or a step along the channels of a 1x1 map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, base_values, given, on_chip_dtype, shape_text, wrap_axis
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit

_SPANS = ("starts", "ends", "axes", "steps")


_REQUIRED = "every step must be 1, but for an aligned step along the channels of a 1x1 map"


def slice_values(op: Op) -> Values:
    """``starts``, ``ends`` and ``steps`` over the four axes; None where one of them is not known."""
    values = base_values(op)
    values |= dict.fromkeys(("starts", "ends", "steps"))
    value = op.input(0)
    rank = None if value is None else value.rank
    span: dict[str, list[Any] | None] = {}
    for index, name in enumerate(_SPANS, 1):
        stated, span[name] = given(op, index, name)
        if not stated and span["starts"] is not None:
            count = len(span["starts"])
            span[name] = list(range(count)) if name == "axes" else [1] * count
    if op.input(4) is None and op.attr("steps") is None:
        values["steps"] = (1, 1, 1, 1)
    axes = None if span["axes"] is None else [wrap_axis(axis, rank) for axis in span["axes"]]
    if axes is None or None in axes:
        return values
    for name, default in (("starts", 0), ("ends", None), ("steps", 1)):
        items = span[name]
        if items is None or len(items) != len(axes):
            continue
        spread = [default] * 4
        for axis, item in zip(axes, items):
            if axis is not None and axis < 4:
                spread[axis] = item
        values[name] = tuple(spread)
    return values


def slice_steps(case: Case, limit: Limit) -> Iterator[Finding]:
    """All steps are 1; or height and width are 1 and the channel range is aligned to the packing unit (reading 40)."""
    values, value = case.values, case.op.input(0)
    steps = values["steps"]
    if steps is None:
        yield Finding(f"steps not known (input {shape_text(value)})", "steps 1", unknown=True, text=_REQUIRED)
        return
    if all(step == 1 for step in steps):
        return
    shown = f"steps {'x'.join(map(str, steps))} of {shape_text(value)}"
    unit = limit.params["subc"].get(None if value is None else on_chip_dtype(value, case.target.precision))
    if unit is None or any(steps[axis] != 1 for axis in (0, 2, 3)):
        yield Finding(shown, "steps 1", "use unit steps, or a strided convolution or pooling", text=_REQUIRED)
        return
    channel, starts, ends = values["channel"], values["starts"], values["ends"]
    needed = (values["height"], values["width"], channel, starts, ends)
    allowed = f"steps 1, or height = width = 1 with channel, start and end a multiple of {unit} and step 1..{unit}"
    if None in needed:
        yield Finding(shown, allowed, unknown=True, text=_REQUIRED)
        return
    end = channel if ends[1] is None else min(ends[1], channel) if ends[1] >= 0 else ends[1] + channel
    start = starts[1] if starts[1] >= 0 else starts[1] + channel
    single = values["height"] * values["width"] == 1
    if single and 1 <= steps[1] <= unit and not any(item % unit for item in (channel, start, end)):
        return
    yield Finding(f"{shown}, channels {start}:{end}", allowed, "use unit steps", text=_REQUIRED)
