"""Ops that move data: Concat, Split, Gather, Pad, exWindow, exGlu."""

from __future__ import annotations

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, base_values, given, size, text, wrap_axis


def axis_values(op: Op) -> Values:
    """``axis`` among the four axes (absent: 0), and the rank of a Gather's indices."""
    values = base_values(op)
    value = op.input(0)
    values["axis"] = wrap_axis(op.attr("axis", 0), None if value is None else value.rank)
    indices = op.input(1)
    values["indices_rank"] = None if indices is None else indices.rank
    return values


def glu_values(op: Op) -> Values:
    """``axis`` (absent: 1)."""
    values = base_values(op)
    value = op.input(0)
    values["axis"] = wrap_axis(op.attr("axis", 1), None if value is None else value.rank)
    return values


def pad_values(op: Op) -> Values:
    """``mode``, the least of all pads and the number of elements of the constant."""
    values = base_values(op)
    values["mode"] = text(op.attr("mode", "constant"))
    _, pads = given(op, 1, "pads")
    values["least_pad"] = None if pads is None else min(pads, default=0)
    constant = op.input(2)
    values["constant_value_size"] = 1 if constant is None else size(constant)
    return values


def window_values(op: Op) -> Values:
    """``mode`` and how many numbers describe the windows."""
    values = base_values(op)
    values["mode"] = text(op.attr("mode"))
    values["window_sizes_length"] = len(op.attr("window_sizes") or ())
    values["num_windows_length"] = len(op.attr("num_windows") or ())
    return values
