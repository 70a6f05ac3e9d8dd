"""Fuses attention into exSDPAttention, masked softmax into exSoftmaxMask, and brings softmax to axis 1 or 3.

Models ``fuse_matmul_softmax_matmul_to_sdpa``, ``fuse_exmatmul_add_mul_exsoftmax13_exmatmul_to_sdpa``,
``fuse_mul_into_sdpa``, ``convert_softmax_to_exsoftmax13``, ``fix_exsoftmax_axis`` and
``fuse_where_softmax_to_exsoftmaxmask``.
"""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.rewriting import (
    Context,
    known,
    number,
    producer,
    reader,
    rewrite,
    shape_of,
    split_constant,
    union,
)
from ort_rknpu.graph import Op, Value

SDPA = "sdpa"
"""Feature of targets that have exSDPAttention."""
SOFTMAX_MASK = "softmax_mask"
"""Feature of targets that have exSoftmaxMask."""


def _scalar_of(op: Op) -> Value | None:
    """The run-time operand of an op that multiplies (divides) by one constant number."""
    pair = split_constant(op)
    if pair is None or number(pair[1]) is None or (op.op_type == "Div" and op.inputs[0] is pair[1]):
        return None
    return pair[0]


def _turned(value: Value, origins: frozenset[int], context: Context) -> Value:
    """[.., l, d] as [b, d, 1, l]."""
    shape = shape_of(value)
    rank = len(shape)
    turned = context.transpose(value, (*range(rank - 2), rank - 1, rank - 2), origins)
    return context.reshape(turned, (prod(shape[:-2]), shape[-1], 1, shape[-2]), origins)


@rewrite("fuse_matmul_softmax_matmul_to_sdpa", "MatMul", requires=SDPA)
def attention(op: Op, context: Context) -> bool:
    """MatMul, Mul or Div by a number, Add of a mask, Softmax over the last axis, MatMul; none of q, k, v an input."""
    query, key = op.inputs[0], op.inputs[1]
    parts = [op]
    mask: Value | None = None
    step = reader(op, context, "Mul", "Div", "Add", "Softmax")
    if step is not None and step.op_type in ("Mul", "Div"):
        if _scalar_of(step) is None:
            return False
        parts.append(step)
        step = reader(step, context, "Add", "Softmax")
    if step is not None and step.op_type == "Add":
        mask = step.inputs[1] if step.inputs[0] is parts[-1].outputs[0] else step.inputs[0]
        parts.append(step)
        step = reader(step, context, "Softmax")
    if step is None or step.op_type != "Softmax" or step.attr("axis", -1) not in (-1, (step.outputs[0].rank or 0) - 1):
        return False
    parts.append(step)
    last = reader(step, context, "MatMul")
    if last is None or last.inputs[0] is not step.outputs[0] or not all(known(part) for part in (*parts, last)):
        return False
    value = last.inputs[1]
    if query is None or key is None or value is None or any(v.producer is None for v in (query, key, value)):
        return False
    if (query.rank or 0) < 3 or any(len(shape_of(v)) != len(shape_of(query)) for v in (key, value)):
        return False
    origins = union(*parts, last)
    q = _turned(query, origins, context)
    depth, length = shape_of(key)[-2:]
    k = context.reshape(key, (prod(shape_of(key)[:-2]), depth, 1, length), origins)
    v = _turned(value, origins, context)
    operands = [q, k, v]
    if mask is not None:
        if mask.constant:
            operands.append(context.constant(mask, (1, length, 1, shape_of(query)[-2])))
        else:
            operands.append(_turned(mask, origins, context))
    shape = shape_of(last.outputs[0])
    batch = prod(shape[:-2])
    out = context.add("exSDPAttention", operands, [(batch, shape[-1], 1, shape[-2])], origins, base="sdpa").outputs[0]
    out = context.transpose(out, (0, 3, 2, 1), origins)
    context.replace(last, context.reshape(out, shape, origins))
    return True


@rewrite("fuse_exmatmul_add_mul_exsoftmax13_exmatmul_to_sdpa", "exMatMul", requires=SDPA)
def attention_of_exmatmul(op: Op, context: Context) -> bool:
    """exMatMul, Add of a constant, Mul by a number, exSoftmax13 over keys, Transpose, exMatMul; in that order only."""
    if any(v is None or v.constant for v in op.inputs[:2]):
        return False
    query, key = op.inputs[:2]
    parts = [op]
    mask: Value | None = None
    scaled = False
    if len(op.inputs) > 2:
        scaled = op.attr("c_type") == "mul"
        if scaled and number(op.inputs[2]) is None:
            return False
        mask = None if scaled else op.inputs[2]
    step = reader(op, context, "Add", "Mul", "exSoftmax13")
    if step is not None and step.op_type == "Add":
        pair = split_constant(step)
        if pair is None or scaled or mask is not None:
            return False
        mask = pair[1]
        parts.append(step)
        step = reader(step, context, "Mul", "exSoftmax13")
    if step is not None and step.op_type == "Mul":
        if _scalar_of(step) is None:
            return False
        parts.append(step)
        step = reader(step, context, "exSoftmax13")
    if step is None or step.op_type != "exSoftmax13" or step.attr("axis") != 3:
        return False
    parts.append(step)
    turn = reader(step, context, "Transpose")
    last = reader(turn, context, "exMatMul") if turn is not None else None
    if turn is None or last is None or turn.attr("perm") != [0, 3, 2, 1] or last.inputs[0] is not turn.outputs[0]:
        return False
    value = last.inputs[1]
    if query is None or key is None or value is None or value.constant or len(last.inputs) > 2:
        return False
    origins = union(*parts, turn, last)
    v = context.transpose(value, (0, 3, 2, 1), origins)
    operands = [query, key, v]
    if mask is not None:
        operands.append(context.constant(mask, (1, shape_of(key)[3], 1, shape_of(query)[3])))
    batch, length, _, depth = shape_of(last.outputs[0])
    out = context.add("exSDPAttention", operands, [(batch, depth, 1, length)], origins, base="sdpa").outputs[0]
    context.replace(last, context.transpose(out, (0, 3, 2, 1), origins))
    return True


@rewrite("fuse_mul_into_sdpa", "exSDPAttention", requires=SDPA)
def scale_into_attention(op: Op, context: Context) -> bool:
    """A Mul of the query (or key) by one number becomes the attention's scale."""
    for index in (0, 1):
        mul = producer(op.inputs[index], "Mul")
        source = _scalar_of(mul) if mul is not None else None
        if mul is None or source is None or len(mul.outputs[0].uses) > 1:
            continue
        op.set_input(index, source)
        op.origins |= mul.origins
        context.discard(mul)
        return True
    return False


@rewrite("convert_softmax_to_exsoftmax13", "Softmax")
def softmax(op: Op, context: Context) -> bool:
    """Softmax becomes exSoftmax13 with a non-negative axis."""
    rank = op.outputs[0].rank
    if rank is None:
        return False
    axis = op.attr("axis", 1 if context.opset < 13 else -1) % rank
    op.op_type = "exSoftmax13"
    op.attributes = {"axis": axis}
    if context.opset < 13 and known(op):
        shape = shape_of(op.outputs[0])
        after = [size for size in shape[axis:] if size != 1]
        if len(after) > 1:
            # before opset 13 everything from the axis on is one row
            view = (1, prod(shape[:axis]), 1, prod(shape[axis:]))
            x = context.reshape(op.inputs[0], view, op.origins)  # type: ignore[arg-type]
            y = context.add("exSoftmax13", [x], [view], op.origins, {"axis": 3}, base=op.name).outputs[0]
            context.replace(op, context.reshape(y, shape, op.origins))
        elif after:
            op.attributes = {"axis": axis + next(i for i, size in enumerate(shape[axis:]) if size != 1)}
    return True


@rewrite("fix_exsoftmax_axis", "exSoftmax13")
def softmax_axis(op: Op, context: Context) -> bool:
    """On rank 4, axes 2 and 0 become axis 1.

    Axis 2 that of [c, h, 1, w] or, for several batches, of [n, h, c, w]; axis 0 of several batches of [c, n, h, w].
    """
    source = op.inputs[0]
    if source is None or not known(op) or source.rank != 4 or op.attr("axis") not in (0, 2):
        return False
    shape = shape_of(source)
    if op.attr("axis") == 0:
        return shape[0] > 1 and _batches_to_channels(op, source, context)
    if shape[0] > 1 and shape[1] > 1:
        x = context.transpose(source, (0, 2, 1, 3), op.origins)
        y = context.add("exSoftmax13", [x], [shape_of(x)], op.origins, {"axis": 1}, base=op.name).outputs[0]
        context.replace(op, context.transpose(y, (0, 2, 1, 3), op.origins))
        return True
    view = (shape[0] * shape[1], shape[2], 1, shape[3])
    x = context.reshape(source, view, op.origins)
    y = context.add("exSoftmax13", [x], [view], op.origins, {"axis": 1}, base=op.name).outputs[0]
    context.replace(op, context.reshape(y, shape, op.origins))
    return True


def _batches_to_channels(op: Op, source: Value, context: Context) -> bool:
    n, c, h, w = shape = shape_of(source)
    if h == 1:
        x = context.reshape(source, (1, n, c, w), op.origins)
    else:
        x = context.transpose(source, (1, 0, 2, 3), op.origins)
    y = context.add("exSoftmax13", [x], [shape_of(x)], op.origins, {"axis": 1}, base=op.name).outputs[0]
    y = context.reshape(y, shape, op.origins) if h == 1 else context.transpose(y, (1, 0, 2, 3), op.origins)
    context.replace(op, y)
    return True


@rewrite("fuse_where_softmax_to_exsoftmaxmask", "Where", requires=SOFTMAX_MASK)
def masked_softmax(op: Op, context: Context) -> bool:
    """Where(mask, -big, x) before a softmax, the mask of size 1 on all axes but the softmax's."""
    soft = reader(op, context, "Softmax", "exSoftmax13")
    condition = op.inputs[0]
    if soft is None or condition is None or not known(op):
        return False
    fills = [number(op.inputs[1]), number(op.inputs[2])]
    side = next((i for i, fill in enumerate(fills) if fill is not None and fill <= -100), None)
    rank = soft.outputs[0].rank or 0
    if side is None or rank == 0:
        return False
    axis = soft.attr("axis", -1) % rank
    shape = (1,) * (rank - len(shape_of(condition))) + shape_of(condition)
    if any(size != 1 for i, size in enumerate(shape) if i != axis):
        return False
    source = op.inputs[2 - side]
    attributes = {"axis": axis, "mask_value": 1 - side}
    new = context.add(
        "exSoftmaxMask", [source, condition], [shape_of(soft.outputs[0])], union(op, soft), attributes, base=soft.name
    )
    context.replace(soft, new.outputs[0])
    return True
