"""Element-wise operators of other back ends as ONNX operators."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import TensorProto

from custom_ops.elementwise import COMPARISONS, OP_TYPES, missing_ones, operation_of
from custom_ops.errors import OpError
from custom_ops.lowering.builder import Builder

_ONNX = {
    "SUM": "Add",
    "PROD": "Mul",
    "MAX": "Max",
    "MIN": "Min",
    "SUB": "Sub",
    "DIV": "Div",
    "POWER": "Pow",
    "AND": "And",
    "OR": "Or",
    "XOR": "Xor",
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "LESS": "Less",
}
_LOGICAL = ("AND", "OR", "XOR")
_WIDENED = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16, TensorProto.BOOL)
_FLOATING = (TensorProto.FLOAT, TensorProto.DOUBLE)


def _lower(op_type: str, b: Builder, inputs: list[str]) -> list[str]:
    """One ONNX operator, or a few where it differs; short integers are computed in int32, as kernels are missing."""
    operation = operation_of(op_type, b.attributes)
    left, right = inputs
    if b.attributes.get("auto_broadcast") == "pdpd":
        right = _aligned(b, right)
    kind = b.element_type
    if operation in _LOGICAL or kind not in _WIDENED:
        return [_apply(b, operation, left, right, kind)]
    if operation == "POWER":
        return [_power(b, left, right, kind)]
    wide = [b.call("Cast", name, to=TensorProto.INT32) for name in (left, right)]
    result = _apply(b, operation, wide[0], wide[1], TensorProto.INT32)
    return [result if operation in COMPARISONS else b.call("Cast", result, to=kind)]


def _apply(b: Builder, operation: str, left: str, right: str, kind: int) -> str:
    if operation in ("DIV", "FLOOR_DIV") and kind not in _FLOATING:
        return _divide(b, left, right, kind, operation == "FLOOR_DIV")
    if operation == "FLOOR_DIV":
        return b.call("Floor", b.call("Div", left, right))
    return b.call(_ONNX[operation], left, right)


def _divide(b: Builder, left: str, right: str, kind: int, floor: bool) -> str:
    """Integers. The smallest one divided by -1 ends the process in ONNX Runtime, so -1 is replaced by a negation."""
    dtype = np.int32 if kind == TensorProto.INT32 else np.int64
    minus_one, zero, one = (b.tensor(np.array(value, dtype), "constant") for value in (-1, 0, 1))
    negated = b.call("Equal", right, minus_one)
    numerator = b.call("Where", negated, b.call("Sub", zero, left), left)
    quotient: str = b.call("Div", numerator, b.call("Where", negated, one, right))
    if not floor:
        return quotient
    exact = b.call("Equal", b.call("Mod", left, right), zero)
    opposite = b.call("Xor", b.call("Less", left, zero), b.call("Less", right, zero))
    lower = b.call("And", b.call("Not", exact), opposite)
    return str(b.call("Sub", quotient, b.call("Cast", lower, to=kind)))


def _power(b: Builder, left: str, right: str, kind: int) -> str:
    """In float64 and cut to the type's range."""
    limits = [b.tensor(np.array(value, np.float64), "limit") for value in (-128, 127)]
    power = b.call("Pow", *(b.call("Cast", name, to=TensorProto.DOUBLE) for name in (left, right)))
    return b.call("Cast", b.call("Clip", power, *limits), to=kind)


def _aligned(b: Builder, right: str) -> str:
    """B with as many trailing ones as plain broadcasting needs."""
    shape_a, shape_b = b.shapes[:2]
    if shape_a is None or shape_b is None:
        raise OpError("auto_broadcast pdpd needs known ranks")
    rank = len(shape_b)
    missing = missing_ones(len(shape_a), rank, b.attributes["axis"])
    if missing < 0:
        return b.squeeze(right, *range(rank + missing, rank))
    return b.unsqueeze(right, *range(rank, rank + missing)) if missing else right


LOWERINGS = {name: partial(_lower, name) for name in OP_TYPES}
