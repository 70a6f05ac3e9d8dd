"""Takes out ops that change nothing (toolkit rules ``remove_invalid_*``)."""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler.layout import is_identity, keeps_order
from ort_rknpu.compiler.rewriting import Context, known, number, numbers, rewrite, shape_of
from ort_rknpu.graph import Op, Value


def _filled_with(value: Value | None, content: float) -> bool:
    return value is not None and value.const is not None and bool(np.all(value.const == content))


def _same_shape(op: Op) -> bool:
    return known(op) and shape_of(op.input(0)) == shape_of(op.outputs[0])


@rewrite("remove_invalid_reshape", "Reshape")
def remove_invalid_reshape(op: Op, context: Context) -> bool:
    """A Reshape to the shape it reads."""
    return _same_shape(op) and context.bypass(op)


@rewrite("remove_invalid_transpose", "Transpose")
def remove_invalid_transpose(op: Op, context: Context) -> bool:
    """A Transpose that changes neither shape nor memory order."""
    if not known(op) or op.attr("perm") is None:
        return False
    shape = shape_of(op.input(0))
    still = is_identity(op.attr("perm")) or (shape == shape_of(op.outputs[0]) and keeps_order(shape, op.attr("perm")))
    return still and context.bypass(op)


@rewrite("remove_invalid_cast", "Cast")
def remove_invalid_cast(op: Op, context: Context) -> bool:
    """A Cast to the type it reads, or between float types (the compiler picks its own)."""
    source, target = op.inputs[0], op.outputs[0]
    floats = ("float16", "float32", "float64", "bfloat16")
    if source is None or source.dtype is None or target.dtype is None:
        return False
    if source.dtype != target.dtype and not (source.dtype in floats and target.dtype in floats):
        return False
    return context.bypass(op)


@rewrite("remove_invalid_add", "Add")
def remove_invalid_add(op: Op, context: Context) -> bool:
    """Adding zeros that do not broadcast the other operand."""
    return _drops_constant(op, context, 0.0)


@rewrite("remove_invalid_mul", "Mul")
def remove_invalid_mul(op: Op, context: Context) -> bool:
    """Multiplying by ones that do not broadcast the other operand."""
    return _drops_constant(op, context, 1.0)


def _drops_constant(op: Op, context: Context, neutral: float) -> bool:
    """A constant of rank 1, as a Linear's bias, stays: the compiler shrinks it to one number (``shrink_add_const``)."""
    a, b = op.input(0), op.input(1)
    if a is None or b is None or not known(op):
        return False
    if a.constant and not b.constant and _filled_with(a, neutral) and b.shape == op.outputs[0].shape:
        op.set_inputs([b, a])
        a, b = b, a
    if b.rank == 1 and shape_of(b) != (1,):
        return False
    if a.constant or not b.constant or not _filled_with(b, neutral) or a.shape != op.outputs[0].shape:
        return False
    return context.bypass(op)


@rewrite("remove_invalid_bn", "BatchNormalization")
def remove_invalid_bn(op: Op, context: Context) -> bool:
    """A BatchNormalization of scale 1, bias 0, mean 0 and variance 1."""
    neutral = (1.0, 0.0, 0.0, 1.0)
    if not all(_filled_with(op.input(i + 1), content) for i, content in enumerate(neutral)):
        return False
    return context.bypass(op)


@rewrite("remove_invalid_pad", "Pad")
def remove_invalid_pad(op: Op, context: Context) -> bool:
    """A Pad by nothing."""
    return _same_shape(op) and not any(numbers(op.input(1)) or op.attr("pads") or [1]) and context.bypass(op)


@rewrite("remove_invalid_slice", "Slice")
def remove_invalid_slice(op: Op, context: Context) -> bool:
    """A Slice that takes everything."""
    steps = numbers(op.input(4))
    return _same_shape(op) and (steps is None or min(steps) > 0) and context.bypass(op)


@rewrite("remove_invalid_expand", "Expand")
def remove_invalid_expand(op: Op, context: Context) -> bool:
    """An Expand to the shape it reads."""
    return _same_shape(op) and context.bypass(op)


@rewrite("remove_invalid_reducemen", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def remove_invalid_reduce(op: Op, context: Context) -> bool:
    """A reduction over dimensions of 1 that keeps them."""
    if op.op_type == "ReduceMean" or op.origins == frozenset():
        return _same_shape(op) and context.bypass(op)
    return False


@rewrite("remove_invalid_maxpool", "MaxPool")
def remove_invalid_maxpool(op: Op, context: Context) -> bool:
    """A MaxPool of kernel 1 and stride 1."""
    kernel, strides = op.attr("kernel_shape") or [2], op.attr("strides") or [1]
    if max(kernel) > 1 or max(strides) > 1 or any(op.attr("pads") or [0]) or len(op.outputs) > 1:
        return False
    return _same_shape(op) and context.bypass(op)


@rewrite("fuse_two_clip", "Clip")
def remove_unbounded_clip(op: Op, context: Context) -> bool:
    """A Clip without bounds."""
    bounded = (
        op.input(1) is not None or op.input(2) is not None or op.attr("min") is not None or op.attr("max") is not None
    )
    return not bounded and number(op.input(1)) is None and context.bypass(op)
