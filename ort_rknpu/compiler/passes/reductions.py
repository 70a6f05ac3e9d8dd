"""Rewrites of reductions into pools, 1x1 Convs and exMatMul.

Models ``convert_reducemean_to_einsum``, ``convert_2in_einsum_to_exmatmul``, ``convert_reduce_sum_to_conv``,
``convert_reducesum_to_einsum``, ``convert_reduce_L2_to_pow_sum_pow``, ``convert_keepdims_to_1_<op>``,
``convert_cumsum_to_einsum`` and ``exmatmul_bcast_batch2width``.
"""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.passes.wrap_rank import reduced_axes
from ort_rknpu.compiler.rewriting import Context, known, number, numbers, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value


def _contiguous(axes: list[int]) -> bool:
    return bool(axes) and axes == list(range(axes[0], axes[-1] + 1))


def sum_by_exmatmul(op: Op, axes: list[int], context: Context) -> None:
    """[before, reduced, 1, after] times a constant vector."""
    assert op.inputs[0] is not None
    source, axes = _together(op, op.inputs[0], axes, context)
    shape = shape_of(source)
    before, size, after = prod(shape[: axes[0]]), prod(shape[axes[0] : axes[-1] + 1]), prod(shape[axes[-1] + 1 :])
    x = context.reshape(source, (before, size, 1, after), op.origins)
    weight = Value(context.unique("ones"), (1, size, 1, 1), source.dtype, constant=True)
    y = context.add("exMatMul", [weight, x], [(before, 1, 1, after)], op.origins, base="mm").outputs[0]
    context.replace(op, context.reshape(y, shape_of(op.outputs[0]), op.origins))


def _together(op: Op, source: Value, axes: list[int], context: Context) -> tuple[Value, list[int]]:
    """The source with its reduced axes moved side by side, to where the first one stands."""
    if _contiguous(axes):
        return source, axes
    rank = len(shape_of(source))
    rest = [axis for axis in range(axes[0] + 1, rank) if axis not in axes]
    perm = [*range(axes[0]), *axes, *rest]
    return context.transpose(source, perm, op.origins), list(range(axes[0], axes[0] + len(axes)))


def stated_in_order(op: Op, axes: list[int]) -> bool:
    """Whether the reduction states these axes of rank 4 in this order, counted from either end."""
    given = op.attr("axes") if op.input(1) is None else numbers(op.input(1))
    return given is not None and [axis % 4 for axis in given] == axes


@rewrite("convert_reducemean_to_einsum", "ReduceMean")
def reduce_mean(op: Op, context: Context) -> bool:
    """A mean over h and w becomes a global pool (whose output stays rank 4), any other but over n an exMatMul."""
    source, axes = op.inputs[0], reduced_axes(op)
    if source is None or axes is None or not known(op) or not axes:
        return False
    shape = shape_of(source)
    if len(shape) == 4 and stated_in_order(op, [2, 3]):
        view = (*shape[:2], 1, 1)
        pooled = context.add("GlobalAveragePool", [source], [view], op.origins, base=op.name).outputs[0]
        context.replace(op, context.reshape(pooled, shape_of(op.outputs[0])))
        return True
    if axes[0] == 0 and (shape[0] != 1 or len(axes) == 1) and len(shape) != 3:
        return False
    sum_by_exmatmul(op, axes, context)
    return True


@rewrite("convert_keepdims_to_1", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ArgMax", "ArgMin")
def keep_dims(op: Op, context: Context) -> bool:
    """A reduction keeps its dimensions; a Reshape drops them."""
    source = op.inputs[0]
    if source is None or op.attr("keepdims", 1) or not known(op):
        return False
    if op.op_type in ("ReduceSum", "ReduceL2") and source.rank == 4:
        return False
    shape = list(shape_of(source))
    axes = [op.attr("axis", 0) % len(shape)] if op.op_type.startswith("Arg") else reduced_axes(op)
    if axes is None:
        return False
    for axis in axes:
        shape[axis] = 1
    new = context.add(
        op.op_type,
        op.inputs,
        [shape],
        op.origins,
        {**op.attributes, "keepdims": 1},
        base=op.name,
        dtype=op.outputs[0].dtype,
    )
    context.replace(op, context.reshape(new.outputs[0], shape_of(op.outputs[0])))
    return True


@rewrite("convert_reduce_L2_to_pow_sum_pow", "ReduceL2")
def reduce_l2(op: Op, context: Context) -> bool:
    """sqrt(sum(x^2)) as Pow, ReduceSum, Pow."""
    source, axes = op.inputs[0], reduced_axes(op)
    if source is None or axes is None or source.rank != 4 or not known(op):
        return False
    square = context.add(
        "Pow", [source, context.scalar(2.0, source.dtype)], [shape_of(source)], op.origins, base="pow"
    ).outputs[0]
    keep = op.attr("keepdims", 1)
    total = square
    if shape_of(op.outputs[0]) != shape_of(source):
        attributes = {"axes": axes, "keepdims": keep}
        shape = shape_of(op.outputs[0])
        total = context.add("ReduceSum", [square], [shape], op.origins, attributes, base="sum").outputs[0]
    half = context.scalar(0.5, source.dtype)
    root = context.add("Pow", [total, half], [shape_of(op.outputs[0])], op.origins, base="pow").outputs[0]
    context.replace(op, root)
    return True


@rewrite("convert_reduce_sum_to_conv", "ReduceSum")
def reduce_sum(op: Op, context: Context) -> bool:
    """A sum over one axis of rank 4 becomes a 1x1 Conv, over h and w an exMatMul; over n it stays."""
    source, axes = op.inputs[0], reduced_axes(op)
    if source is None or axes is None or not axes or not known(op):
        return False
    if not (source.dtype or "float32").startswith("float"):
        return False
    if source.rank != 4:
        # wrapped to rank 4 the axis would be the batch
        leading = axes == [0] or (source.rank == 5 and axes == [1] and shape_of(source)[0] == 1)
        if leading and source.rank in (3, 5):
            sum_by_exmatmul(op, axes, context)
            return True
        return False
    shape = shape_of(source)
    if axes == [0] or (len(axes) == len(shape) and shape[0] != 1):
        return False
    if len(axes) > 1:
        sum_by_exmatmul(op, axes, context)
        return True
    axis = axes[0]
    perm = {1: None, 2: (0, 2, 1, 3), 3: (0, 3, 2, 1)}[axis]
    x = source if perm is None else context.transpose(source, perm, op.origins)
    n, c, h, w = shape_of(x)
    kernel = Value(context.unique("ones"), (1, c, 1, 1), source.dtype, constant=True)
    conv = context.add("Conv", [x, kernel], [(n, 1, h, w)], op.origins, {"kernel_shape": [1, 1]}, base=op.name)
    y = conv.outputs[0] if perm is None else context.transpose(conv.outputs[0], perm, op.origins)
    context.replace(op, context.reshape(y, shape_of(op.outputs[0]), op.origins))
    return True


@rewrite("convert_cumsum_to_einsum", "CumSum")
def cumsum(op: Op, context: Context) -> bool:
    """CumSum becomes an exMatMul by a triangular constant along its axis."""
    source, axis_value = op.inputs[0], number(op.input(1))
    if source is None or axis_value is None or not known(op) or not (source.dtype or "float32").startswith("float"):
        return False
    shape = shape_of(source)
    axis = int(axis_value) % len(shape)
    before, size, after = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    x = context.reshape(source, (before, size, 1, after), op.origins)
    weight = Value(context.unique("triangle"), (1, size, 1, size), source.dtype, constant=True)
    y = context.add("exMatMul", [weight, x], [(before, size, 1, after)], op.origins, base="mm").outputs[0]
    context.replace(op, context.reshape(y, shape, op.origins))
    return True


@rewrite("exmatmul_bcast_batch2width", "exMatMul")
def batch_to_width(op: Op, context: Context) -> bool:
    """[b,k,1,1] times a constant, turned to [1,b,1,1] behind, becomes [1,k,1,b]."""
    weight, x = op.inputs[0], op.inputs[1]
    if weight is None or x is None or not weight.constant or x.constant or len(op.inputs) > 2:
        return False
    batch, k, _, width = shape_of(x)
    turn = reader(op, context, "Transpose")
    if batch == 1 or width != 1 or turn is None or shape_of(weight)[3] != 1:
        return False
    if shape_of(turn.outputs[0]) != (1, batch, 1, 1):
        return False
    x = context.reshape(x, (1, batch, 1, k), op.origins)
    x = context.transpose(x, (0, 3, 2, 1), op.origins | turn.origins)
    y = context.add("exMatMul", [x, weight], [(1, batch, 1, 1)], op.origins | turn.origins, base="mm").outputs[0]
    context.replace(turn, y)
    return True
