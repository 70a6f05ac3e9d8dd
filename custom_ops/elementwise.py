"""Element-wise operators of other back ends: output shapes, element types and the numpy reference.

TensorRT ``ElementWise``, DirectML ``ElementWiseMultiply``, OpenVINO ``Less`` and ``Greater``. Integers wrap around as
in two's complement; DIV rounds to zero, FLOOR_DIV down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from custom_ops.broadcast import Broadcast, Shape, equal_rank, numpy, pdpd, same_shape
from custom_ops.errors import OpError

Array = npt.NDArray[Any]

FLOATS: tuple[str, ...] = ("float32", "float16", "bfloat16")
_NUMBERS = ("int8", "int32", "int64", *FLOATS)
_ARITHMETIC = ("SUM", "PROD", "MAX", "MIN", "SUB", "DIV", "FLOOR_DIV")

OPERATION_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ARITHMETIC, _NUMBERS),
    "POWER": ("int8", *FLOATS),
    **dict.fromkeys(("AND", "OR", "XOR"), ("bool",)),
    **dict.fromkeys(("EQUAL", "GREATER", "LESS"), tuple(t for t in _NUMBERS if t != "int8")),
}
"""Operations of TensorRT's ElementWise and the element types of both inputs, as of TensorRT 10.7."""

COMPARISONS: tuple[str, ...] = ("EQUAL", "GREATER", "LESS")
"""Operations whose output is bool whatever the inputs are."""


def missing_ones(rank_a: int, rank_b: int, axis: int) -> int:
    """How many trailing ones B lacks so that plain broadcasting onto A does what pdpd says; negative: has too many."""
    start = rank_a - rank_b if axis == -1 else min(axis, rank_a)
    return rank_a - start - rank_b if rank_b else 0


def broadcast(op_type: str, a: Shape, b: Shape, attributes: Mapping[str, Any]) -> Broadcast:
    """The broadcast rule of one operator on two shapes."""
    if op_type == "ElementWise":
        return equal_rank(a, b)
    if op_type == "ElementWiseMultiply":
        return same_shape(a, b)
    mode = attributes["auto_broadcast"]
    if mode == "pdpd":
        return pdpd(a, b, attributes["axis"])
    return numpy(a, b) if mode == "numpy" else same_shape(a, b)


def infer_shapes(op_type: str, inputs: Sequence[Shape | None], attributes: Mapping[str, Any]) -> list[Shape | None]:
    """The output shape, None where a rank is unknown.

    Raises:
        OpError: the shapes certainly do not go together.
    """
    a, b = inputs
    if a is None or b is None:
        return [None]
    found = broadcast(op_type, a, b, attributes)
    for mismatch in found.mismatches:
        if mismatch.certain:
            raise OpError(f"{mismatch.limit} of the inputs: {mismatch.actual}; needed: {mismatch.allowed}")
    return [(None,) * max(len(a), len(b)) if found.shape is None else found.shape]


def check_type(op_type: str, attributes: Mapping[str, Any], dtype: str) -> None:
    """OpError where TensorRT's operation does not take that type; the contract says it for the other operators."""
    if op_type == "ElementWise" and dtype not in OPERATION_TYPES[attributes["operation"]]:
        allowed = ", ".join(OPERATION_TYPES[attributes["operation"]])
        raise OpError(f"operation {attributes['operation']} takes {allowed}, not {dtype}")


def _no_zero(b: Array) -> None:
    if b.dtype.kind != "f" and not b.all():
        raise OpError("integer division by zero")


def _divide(a: Array, b: Array) -> Array:
    _no_zero(b)
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)), a.dtype)


def _floor_divide(a: Array, b: Array) -> Array:
    _no_zero(b)
    return np.floor(np.divide(a, b)) if a.dtype.kind == "f" else np.floor_divide(a, b)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    limits = np.iinfo(a.dtype)
    exact = np.power(a.astype(np.float64), b.astype(np.float64))
    return np.clip(exact, limits.min, limits.max).astype(a.dtype)


_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "SUB": np.subtract,
    "DIV": _divide,
    "POWER": _power,
    "FLOOR_DIV": _floor_divide,
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
    "EQUAL": np.equal,
    "GREATER": np.greater,
    "LESS": np.less,
}
_OPERATION_OF = {"ElementWiseMultiply": "PROD", "Less": "LESS", "Greater": "GREATER"}


def operation_of(op_type: str, attributes: Mapping[str, Any]) -> str:
    """The operation a node computes, in TensorRT's words."""
    return str(attributes["operation"]) if op_type == "ElementWise" else _OPERATION_OF[op_type]


def compute(op_type: str, arguments: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array]:
    """The output for two arrays of one type.

    Raises:
        OpError: TensorRT's operation does not take the type, or an integer is divided by zero.
    """
    a, b = arguments
    assert a is not None
    assert b is not None
    check_type(op_type, attributes, a.dtype.name)
    if attributes.get("auto_broadcast") == "pdpd":
        missing = missing_ones(a.ndim, b.ndim, attributes["axis"])
        b = b.reshape(b.shape[:missing] if missing < 0 else b.shape + (1,) * missing)
    return [np.asarray(_OPERATIONS[operation_of(op_type, attributes)](a, b))]


OP_TYPES: tuple[str, ...] = ("ElementWise", "ElementWiseMultiply", "Less", "Greater")
SHAPES = {name: partial(infer_shapes, name) for name in OP_TYPES}
FUNCTIONS = {name: partial(compute, name) for name in OP_TYPES}
