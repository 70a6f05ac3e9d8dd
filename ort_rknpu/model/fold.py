"""Evaluates one op whose inputs are all known, for the chains that compute shapes, masks and indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ort_rknpu.graph import Op

MAX_FOLD_ELEMENTS = 1 << 16
"""Results above this size are known by shape and dtype only."""
MAX_REFERENCE_ELEMENTS = 1 << 12
"""Ops without a numpy form here go through onnx's reference evaluator, which is slow: small operands only."""

Arrays = Sequence[np.ndarray | None]
Fold = Callable[[Op, Arrays], np.ndarray]


def evaluate(op: Op, node: onnx.NodeProto, inputs: Arrays, opset: int) -> list[np.ndarray] | None:
    """The outputs of ``op`` on ``inputs``, or None where it cannot be evaluated cheaply or at all.

    The caller makes sure that the outputs are small enough.
    """
    fold = _FOLDS.get(op.op_type) if op.domain == "" else None
    try:
        with np.errstate(all="ignore"):
            if fold is not None:
                return [np.asarray(fold(op, inputs))]
            if sum(a.size for a in inputs if a is not None) > MAX_REFERENCE_ELEMENTS:
                return None
            return _by_reference(node, inputs, opset)
    except Exception:  # numpy and the evaluator raise anything on odd operands; not folding is always right
        return None


def _by_reference(node: onnx.NodeProto, inputs: Arrays, opset: int) -> list[np.ndarray] | None:
    feeds = {name: array for name, array in zip(node.input, inputs) if name and array is not None}
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ],
        [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
    results = iter(ReferenceEvaluator(model).run(None, feeds))
    outputs = [next(results) if name else np.empty(0) for name in node.output]
    return outputs if all(isinstance(o, np.ndarray) for o in outputs) else None


def _need(array: np.ndarray | None) -> np.ndarray:
    if array is None:
        raise ValueError("a needed input is omitted")
    return array


def _ints(array: np.ndarray | None) -> list[int]:
    return [int(v) for v in np.atleast_1d(_need(array)).ravel()]


def _axes(op: Op, arrays: Arrays, index: int = 1) -> list[int] | None:
    """Axes given as an attribute (older operator sets) or as an input."""
    if len(arrays) > index and arrays[index] is not None:
        return _ints(arrays[index])
    axes = op.attr("axes")
    return None if axes is None else [int(a) for a in axes]


def _unsqueeze(op: Op, arrays: Arrays) -> np.ndarray:
    return np.expand_dims(_need(arrays[0]), tuple(_axes(op, arrays) or ()))


def _squeeze(op: Op, arrays: Arrays) -> np.ndarray:
    axes = _axes(op, arrays)
    return np.squeeze(_need(arrays[0]), None if axes is None else tuple(axes))


def _slice(op: Op, arrays: Arrays) -> np.ndarray:
    data = _need(arrays[0])
    if len(arrays) > 1:
        starts, ends = _ints(arrays[1]), _ints(arrays[2])
        axes = _ints(arrays[3]) if len(arrays) > 3 and arrays[3] is not None else list(range(len(starts)))
        steps = _ints(arrays[4]) if len(arrays) > 4 and arrays[4] is not None else [1] * len(starts)
    else:
        starts, ends = op.attr("starts"), op.attr("ends")
        axes, steps = op.attr("axes") or list(range(len(starts))), [1] * len(starts)
    index: list[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        size = data.shape[axis]
        # counting down to before the first element is written as a very negative end
        stop = None if step < 0 and end < -size else end
        index[axis] = slice(start, stop, step)
    return data[tuple(index)]


def _reshape(op: Op, arrays: Arrays) -> np.ndarray:
    data = _need(arrays[0])
    shape = _ints(arrays[1]) if len(arrays) > 1 else [int(v) for v in op.attr("shape")]
    if not op.attr("allowzero", 0):
        shape = [data.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    return data.reshape(shape)


def _cast(op: Op, arrays: Arrays) -> np.ndarray:
    target = op.attr("to")
    if not isinstance(target, int):
        raise ValueError("Cast without a number as its target")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(target)
    return _need(arrays[0]).astype(dtype)


def _constant_of_shape(op: Op, arrays: Arrays) -> np.ndarray:
    value = op.attr("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.full(_ints(arrays[0]) if _need(arrays[0]).size else (), fill.ravel()[0], fill.dtype)


def _divide(op: Op, arrays: Arrays) -> np.ndarray:
    a, b = _need(arrays[0]), _need(arrays[1])
    if not np.issubdtype(a.dtype, np.integer):
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    # integer division truncates towards zero in ONNX, numpy rounds down
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _flatten(op: Op, arrays: Arrays) -> np.ndarray:
    data = _need(arrays[0])
    axis = op.attr("axis", 1)
    axis = axis + data.ndim if axis < 0 else axis
    return data.reshape(int(np.prod(data.shape[:axis], dtype=np.int64)), -1)


def _range(op: Op, arrays: Arrays) -> np.ndarray:
    start, limit, delta = (_need(a) for a in arrays)
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


def _expand(op: Op, arrays: Arrays) -> np.ndarray:
    data = _need(arrays[0])
    return np.array(np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(_ints(arrays[1])))))


def _variadic(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Fold:
    def fold(op: Op, arrays: Arrays) -> np.ndarray:
        result = _need(arrays[0])
        for array in arrays[1:]:
            result = function(result, _need(array))
        return result

    return fold


def _elementwise(function: Callable[..., Any]) -> Fold:
    return lambda op, arrays: function(*(_need(a) for a in arrays))


def _same_dtype(function: Callable[..., Any]) -> Fold:
    return lambda op, arrays: function(*(_need(a) for a in arrays)).astype(_need(arrays[0]).dtype)


_FOLDS: dict[str, Fold] = {
    "Identity": lambda op, a: _need(a[0]),
    "Cast": _cast,
    "Gather": lambda op, a: np.take(_need(a[0]), _need(a[1]), axis=op.attr("axis", 0)),
    "Slice": _slice,
    "Concat": lambda op, a: np.concatenate([_need(x) for x in a], axis=op.attr("axis", 1)),
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": lambda op, a: np.transpose(_need(a[0]), op.attr("perm")),
    "Expand": _expand,
    "Tile": lambda op, a: np.tile(_need(a[0]), _ints(a[1])),
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Add": _elementwise(np.add),
    "Sub": _elementwise(np.subtract),
    "Mul": _elementwise(np.multiply),
    "Div": _divide,
    "Pow": _same_dtype(np.power),
    "Min": _variadic(np.minimum),
    "Max": _variadic(np.maximum),
    "Neg": _elementwise(np.negative),
    "Abs": _elementwise(np.abs),
    "Floor": _elementwise(np.floor),
    "Ceil": _elementwise(np.ceil),
    "Sqrt": _same_dtype(np.sqrt),
    "Exp": _same_dtype(np.exp),
    "Log": _same_dtype(np.log),
    "Sin": _same_dtype(np.sin),
    "Cos": _same_dtype(np.cos),
    "Equal": _elementwise(np.equal),
    "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal),
    "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "Not": _elementwise(np.logical_not),
    "And": _elementwise(np.logical_and),
    "Or": _elementwise(np.logical_or),
    "Xor": _elementwise(np.logical_xor),
    "Where": _elementwise(np.where),
}
