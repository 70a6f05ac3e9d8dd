"""The packed query, key and value of an attention: cut apart where the channels are, not after a rank-5 Transpose.

Models ``merge_exmatmul_inner_perm``, ``relocate_rs_split_axis`` with ``fuse_conv_gather`` for
one batch, and for several what ``merge_dims_and_convert_ND_to_4D_split``,
``relocate_tp_rs_split_axis`` and ``reduce_reshape_op_around_split``
make of [b,l,p*h*d] -> [b,l,p,h,d] -> [p,b,h,l,d] -> Split.
"""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.rewriting import Context, known, producer, reader, rewrite, shape_of, union
from ort_rknpu.graph import Op, Value

ALIGNMENT = 4
"""Channels per head that a Split along channels can cut at (measured 2.3.2: heads of 15 stay on axis 2)."""


@rewrite("merge_exmatmul_inner_perm", "exMatMul")
def sort_channels(op: Op, context: Context) -> bool:
    """A constant exMatMul writes its channels in the order in which a Reshape and a Transpose bring them."""
    weight = op.inputs[0]
    cut = reader(op, context, "Reshape")
    turn = reader(cut, context, "Transpose") if cut is not None else None
    if weight is None or not weight.constant or cut is None or turn is None or not known(op) or not known(turn):
        return False
    if len(op.inputs) > 2 and (op.inputs[2] is None or not op.inputs[2].constant):
        return False
    before, middle, perm = shape_of(op.outputs[0]), shape_of(cut.outputs[0]), list(turn.attr("perm"))
    parts = layout.refine(before, middle)
    if parts is None or before[0] != 1 or len(parts.before[1]) < 2:
        return False
    channels = set(parts.before[1])
    axes = [axis for axis, atoms in enumerate(parts.after) if atoms and set(atoms) <= channels]
    if {atom for axis in axes for atom in parts.after[axis]} != channels:
        return False
    order = [axis for axis in perm if axis in axes]
    if order == axes:
        return False
    target = list(middle)
    where = {}
    for slot, axis in zip(axes, order, strict=True):
        target[slot] = middle[axis]
        where[axis] = slot
    origins = union(op, cut, turn)
    op.origins = turn.origins = cut.origins = origins
    cut.outputs[0].shape = tuple(target)
    turn.attributes = {**turn.attributes, "perm": [where.get(axis, axis) for axis in perm]}
    return True


@rewrite("relocate_rs_split_axis", "Reshape")
def split_channels(op: Op, context: Context) -> bool:
    """[1,h*d*p,1,l] -> [h,d,p,l] -> Split along p becomes [h,p*d,1,l] -> Split along channels, where d is aligned."""
    split = reader(op, context, "Split")
    source = op.inputs[0]
    conv = producer(source, "Conv", "exMatMul")
    if split is None or conv is None or source is None or not known(op) or not known(split) or len(source.uses) > 1:
        return False
    if source.rank != 4 or op.outputs[0].rank != 4 or split.attr("axis", 0) != 2:
        return False
    heads, depth, pieces, length = shape_of(op.outputs[0])
    if depth % ALIGNMENT or len(split.outputs) != pieces or shape_of(source) != (1, heads * depth * pieces, 1, length):
        return False
    op.outputs[0].shape = (heads, pieces * depth, 1, length)
    split.attributes = {**split.attributes, "axis": 1, "split": [depth] * pieces}
    op.origins = split.origins = conv.origins = union(op, split, conv)
    return True


def _first_product(value: Value) -> Op | None:
    """The MatMul or exSDPAttention that a value reaches through layout ops and Muls by constants."""
    for _ in range(8):
        readers = value.consumers()
        if len(readers) != 1:
            return None
        if readers[0].op_type in ("MatMul", "exSDPAttention"):
            return readers[0]
        if readers[0].op_type not in ("Reshape", "Squeeze", "Transpose", "Mul"):
            return None
        value = readers[0].outputs[0]
    return None


@rewrite("relocate_tp_rs_split_axis", "Split")
def split_batches(op: Op, context: Context) -> bool:
    """Split of [p,b,h,l,d] along p, several batches: a Gather sorts [b*p*h,d,1,l] by piece, the Split cuts batches."""
    turn = producer(op.inputs[0], "Transpose")
    cut = producer(turn.inputs[0], "Reshape") if turn is not None else None
    source = cut.inputs[0] if cut is not None else None
    if turn is None or cut is None or source is None or not known(op) or not known(cut) or source.rank != 3:
        return False
    if list(turn.attr("perm")) != [2, 0, 3, 1, 4] or op.attr("axis", 0) != 0:
        return False
    if any(len(o.outputs[0].uses) != 1 for o in (turn, cut)) or len(source.uses) != 1:
        return False
    batch, length, pieces, heads, depth = shape_of(cut.outputs[0])
    if pieces != len(op.outputs) or batch == 1:
        return False
    origins = union(turn, op)
    x = context.reshape(context.transpose(source, (0, 2, 1)), (batch * pieces * heads, depth, 1, length), origins)
    origins = origins.union(*(p.origins for p in map(_first_product, op.outputs[:2]) if p is not None))
    order = np.arange(batch * pieces * heads).reshape(batch, pieces, heads).swapaxes(0, 1).reshape(-1)
    index = Value(context.unique("order"), order.shape, "int64", order)
    x = context.add("Gather", [x, index], [shape_of(x)], origins, {"axis": 0}, base="gather").outputs[0]
    attributes = {"axis": 0, "split": [batch * heads] * pieces}
    split = context.add("Split", [x], [(batch * heads, depth, 1, length)] * pieces, origins, attributes, base=op.name)
    for old, new in zip(list(op.outputs), split.outputs, strict=True):
        pieced = context.reshape(new, (1, batch, heads, depth, length))
        context.graph.replace_value(old, context.transpose(pieced, (0, 1, 2, 4, 3)))
    context.discard(op)
    return True
