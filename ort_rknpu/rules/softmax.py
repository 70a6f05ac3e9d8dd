"""Softmax, its masked form and Hardmax: the axis and the transpose that axis 3 needs."""

from __future__ import annotations

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, base_values, dims, wrap_axis


def softmax_values(op: Op) -> Values:
    """``axis`` among the four axes (absent: the last), and the sizes of a mask."""
    values = base_values(op)
    value = op.input(0)
    values["axis"] = wrap_axis(op.attr("axis", -1), None if value is None else value.rank)
    values["mask_value"] = op.attr("mask_value")
    mask = op.input(1)
    batch, channel, _, width = (1, 1, 1, 1) if mask is None else dims(mask)
    values |= {"mask_batch": batch, "mask_channel": channel, "mask_width": width}
    return values
