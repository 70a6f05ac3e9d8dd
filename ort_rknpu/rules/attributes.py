"""Attributes as rules expect them: kinds and lengths, checked before a rule reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ort_rknpu.errors import ModelError
from ort_rknpu.graph import Op


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes)


def _list_of(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(kind, value))


_KINDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "an integer",
        _is_int,
        "antialias axis batch_size ceil_mode count_include_pad exclude_outside group has_projection hidden_size "
        "input_forget layout linear_before_reset mask_value proj_size sequence_size storage_order to transA transB",
    ),
    ("a number", _is_number, "alpha beta clip cubic_coeff_a eps epsilon extrapolation_value max min"),
    (
        "a string",
        _is_text,
        "auto_pad c_type coordinate_transformation_mode direction input_layout keep_aspect_ratio_policy mode "
        "nearest_mode output_layout",
    ),
    (
        "a list of integers",
        _list_of(_is_int),
        "axes dilations ends kernel_shape num_windows output_padding output_shape pads perm starts steps strides "
        "window_sizes",
    ),
    ("a list of numbers", _list_of(_is_number), "activation_alpha activation_beta scales"),
    ("a list of strings", _list_of(_is_text), "activations"),
)
_BY_NAME = {name: (label, test) for label, test, names in _KINDS for name in names.split()}


def check_attributes(op: Op) -> None:
    """Raises ModelError where an attribute that rules read is of another kind than ONNX and the toolkit define."""
    for name, value in op.attributes.items():
        known = _BY_NAME.get(name)
        if known is not None and not known[1](value):
            raise malformed(op, name, f"must be {known[0]}")


def per_axis(op: Op, name: str, count: int, default: int) -> list[int]:
    """An attribute of one number for each of ``count`` spatial axes.

    Raises:
        ModelError: it has another number of them.
    """
    items = op.attr(name)
    if not items:
        return [default] * count
    if len(items) != count:
        raise malformed(op, name, f"must have {count} numbers, has {len(items)}")
    return list(items)


def malformed(op: Op, name: str, what: str) -> ModelError:
    """The error that names the node and its attribute."""
    return ModelError(f"node {op.name!r} ({op.op_type}): attribute {name} {what}")
