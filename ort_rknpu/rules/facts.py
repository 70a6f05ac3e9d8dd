"""What rules ask of any op: its first tensor as [batch, channel, height, width], dtypes on the chip, constants.

Every function answers None for what is not known; no rule guesses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ort_rknpu.graph import Op, Value

Values = dict[str, Any]
"""The named values that an entry's limits read; None is "not known"."""

FLOATS = frozenset({"float32", "float16", "float64", "bfloat16"})
_ON_CHIP = {"fp16": "float16", "int8": "int8"}
_AXES: dict[int, tuple[int, ...]] = {0: (), 1: (1,), 2: (0, 1), 3: (0, 1, 3), 4: (0, 1, 2, 3)}
"""Rank -> which of batch, channel, height, width its axes are (reading 51)."""


def axes_of_rank(rank: int | None) -> tuple[int, ...] | None:
    """Which of the four axes a tensor of this rank has; None for an unknown rank or one above 4."""
    return None if rank is None else _AXES.get(rank)


def wrap_axis(axis: int | None, rank: int | None) -> int | None:
    """The axis among [batch, channel, height, width]; None where it is not known or the rank is above 4.

    An axis that the tensor does not have comes back as it is.
    """
    axes = axes_of_rank(rank)
    if not isinstance(axis, int) or rank is None or axes is None:
        return None
    return axes[axis % rank] if -rank <= axis < rank else axis


def wrap_shape(shape: Sequence[Any] | None) -> tuple[int | None, int | None, int | None, int | None]:
    """The shape as [batch, channel, height, width], absent axes 1."""
    axes = axes_of_rank(None if shape is None else len(shape))
    if shape is None or axes is None:
        return (None, None, None, None)
    result: list[int | None] = [1, 1, 1, 1]
    for axis, dim in zip(axes, shape):
        result[axis] = dim if isinstance(dim, int) else None
    return (result[0], result[1], result[2], result[3])


def dims(value: Value | None) -> tuple[int | None, int | None, int | None, int | None]:
    """:func:`wrap_shape` of a value's shape."""
    return wrap_shape(None if value is None else value.shape)


def output(op: Op) -> Value:
    """The first output; one of unknown shape where a malformed node has none."""
    return op.outputs[0] if op.outputs else Value("")


def size(value: Value | None) -> int | None:
    """Number of elements."""
    shape = None if value is None else value.static_shape
    return None if shape is None else math.prod(shape)


def is_scalar(value: Value) -> bool:
    """Whether it is known to hold exactly one element."""
    return size(value) == 1


def on_chip_dtype(value: Value, precision: str) -> str | None:
    """The dtype on the NPU: the precision's for float tensors, its own for all others."""
    return _ON_CHIP[precision] if value.dtype in FLOATS else value.dtype


def shape_text(value: Value | None) -> str:
    """The shape as ``1x3xHx?`` with names of symbolic dimensions, ``?`` for unknown ones."""
    if value is None:
        return "absent"
    if value.shape is None:
        return "?"
    return "x".join("?" if dim is None else str(dim) for dim in value.shape) or "scalar"


def numbers(value: Value | None) -> list[Any] | None:
    """A constant's elements in order, None where they are not known."""
    return None if value is None or value.const is None else np.asarray(value.const).reshape(-1).tolist()


def number(value: Value | None) -> Any:
    """A constant's only element, None where it is not known or there are several."""
    items = numbers(value)
    return items[0] if items is not None and len(items) == 1 else None


def given(op: Op, index: int, attribute: str) -> tuple[bool, list[Any] | None]:
    """Whether the op states a parameter (as input or as attribute of an older opset), and its elements if known."""
    if op.input(index) is not None:
        return True, numbers(op.input(index))
    value = op.attr(attribute)
    if value is None:
        return False, None
    return True, np.asarray(value).reshape(-1).tolist()


def text(value: Any) -> Any:
    """An ONNX string attribute as str."""
    return value.decode() if isinstance(value, bytes) else value


def exact(value: float | None) -> float | None:
    """A float32 attribute as the short decimal or fraction it was written as (0.16666667 is 1/6)."""
    if value is None or not math.isfinite(value):
        return value
    fraction = Fraction(value).limit_denominator(1000)
    return float(fraction) if math.isclose(value, fraction, rel_tol=1e-6, abs_tol=1e-12) else value


def greatest_rank(op: Op) -> int | None:
    """The highest rank among activations in and out, None where one is unknown and none exceeds 4."""
    ranks = [value.rank for value in (*op.inputs[:1], *op.outputs) if value is not None]
    known = [rank for rank in ranks if rank is not None]
    highest = max(known, default=None)
    if len(known) < len(ranks) and (highest is None or highest <= 4):
        return None
    return highest


def base_values(op: Op) -> Values:
    """``rank``, and ``batch``, ``channel``, ``height``, ``width`` of the first input."""
    batch, channel, height, width = dims(op.input(0))
    return {"rank": greatest_rank(op), "batch": batch, "channel": channel, "height": height, "width": width}
