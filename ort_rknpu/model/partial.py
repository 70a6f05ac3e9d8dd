"""Shape vectors of which only some elements are known, as ``Shape`` of a tensor with a symbolic batch gives them.

A vector is an object array of numbers, names of symbolic dimensions, and None for an unknown element. What moves
elements around moves them as it moves numbers; arithmetic keeps what it can.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from ort_rknpu.graph import Dim, Op, Shape
from ort_rknpu.model.fold import evaluate

MAX_ELEMENTS = 64
_MOVING = frozenset(
    {"Gather", "Slice", "Concat", "Unsqueeze", "Squeeze", "Reshape", "Identity", "Flatten", "Transpose"}
)
_ARITHMETIC: Mapping[str, tuple[Callable[[int, int], int], int]] = {
    "Add": (operator.add, 0),
    "Sub": (operator.sub, 0),
    "Mul": (operator.mul, 1),
    "Div": (operator.floordiv, 1),
}
"""Op -> the function on positive sizes and the second operand that changes nothing."""


def is_complete(vector: np.ndarray) -> bool:
    """Whether every element is a number."""
    return all(isinstance(element, (int, np.integer)) for element in vector.ravel())


def forward(op: Op, node: onnx.NodeProto, inputs: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The vector that ``op`` makes of vectors and constants, or None where it is not one of these ops."""
    if op.op_type == "Cast":
        return inputs[0] if op.attr("to") in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) else None
    if op.op_type in _MOVING:
        results = evaluate(op, node, inputs, 0)
        # numpy makes a plain string or number of a single element; indices must stay numbers
        return None if results is None else results[0].astype(object)
    if op.op_type in _ARITHMETIC and len(inputs) == 2 and inputs[0] is not None and inputs[1] is not None:
        function, neutral = _ARITHMETIC[op.op_type]
        return np.frompyfunc(lambda a, b: _calculate(function, neutral, a, b), 2, 1)(inputs[0], inputs[1])
    return None


def _calculate(function: Callable[[int, int], int], neutral: int, first: Any, second: Any) -> Dim:
    if isinstance(first, (int, np.integer)) and isinstance(second, (int, np.integer)):
        return int(function(int(first), int(second))) if second or function is not operator.floordiv else None
    if isinstance(second, (int, np.integer)) and second == neutral:
        return first
    commutes = function in (operator.add, operator.mul)
    return second if commutes and isinstance(first, (int, np.integer)) and first == neutral else None


def shape_from(op: Op, data: Shape | None, target: np.ndarray) -> Shape | None:
    """The output shape of a Reshape, Expand or ConstantOfShape whose shape operand is ``target``."""
    sizes: list[Dim] = [int(t) if isinstance(t, (int, np.integer)) else t for t in target.ravel()]
    if op.op_type == "ConstantOfShape":
        return tuple(sizes)
    if op.op_type == "Expand":
        return None if data is None else _expanded(data, sizes)
    return _reshaped(data, sizes, bool(op.attr("allowzero", 0)))


def _expanded(data: Shape, sizes: list[Dim]) -> Shape:
    rank = max(len(data), len(sizes))
    first: Shape = (*[1] * (rank - len(data)), *data)
    second: Shape = (*[1] * (rank - len(sizes)), *sizes)
    return tuple(_broadcast(a, b) for a, b in zip(first, second))


def _broadcast(first: Dim, second: Dim) -> Dim:
    if first == 1 or first == second:
        return second
    if second == 1:
        return first
    # a number above one wins over what is not known: anything else could not be broadcast
    return next((size for size in (first, second) if isinstance(size, int)), None)


def _reshaped(data: Shape | None, sizes: list[Dim], zero_is_size: bool) -> Shape:
    result: list[Dim] = list(sizes)
    if not zero_is_size:
        for index, size in enumerate(sizes):
            if size == 0:
                result[index] = data[index] if data is not None and index < len(data) else None
    if -1 in result:
        place = result.index(-1)
        result[place] = None if data is None else _rest(data, result[:place] + result[place + 1 :])
    return tuple(result)


def _rest(data: Shape, others: list[Dim]) -> Dim:
    """What is left of ``data`` for the one open size once the other sizes are taken out."""
    symbols: list[Dim] = [d for d in data if not isinstance(d, int)]
    for size in others:
        if not isinstance(size, int):
            if size is None or size not in symbols:
                return None
            symbols.remove(size)
    total = int(np.prod([d for d in data if isinstance(d, int)], dtype=np.int64))
    taken = int(np.prod([d for d in others if isinstance(d, int)], dtype=np.int64))
    if taken == 0 or total % taken:
        return None
    if not symbols:
        return total // taken
    return symbols[0] if len(symbols) == 1 and total == taken else None
