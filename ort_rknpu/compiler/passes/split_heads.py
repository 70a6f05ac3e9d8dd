"""The packed query, key and value of an attention: cut apart where the channels are, not after a rank-5 Transpose.

Models what ``merge_exmatmul_inner_perm``, ``merge_dims_and_convert_ND_to_4D_split``, ``relocate_rs_split_axis``,
``relocate_tp_rs_split_axis``, ``reduce_reshape_op_around_split`` and ``fuse_conv_gather`` make of
[b,l,3*h*d] -> [b,l,3,h,d] -> [3,b,h,l,d] -> Split. With one batch the Linear in front writes its channels in the order
that is needed; with several, a Gather over the batch sorts them.
"""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler.rewriting import Context, known, producer, rewrite, shape_of, split_constant, union
from ort_rknpu.graph import Op, Value

ALIGNMENT = 4
"""Channels per head that the Split along channels has to cut at (measured 2.3.2: heads of 15 stay on axis 2)."""


def _linear(value: Value | None) -> list[Op]:
    """The MatMul or Gemm by a constant that wrote a value, with the Add of a constant behind it."""
    found = []
    add = producer(value, "Add")
    if add is not None:
        pair = split_constant(add)
        if pair is None or len(pair[0].uses) != 1:
            return []
        found.append(add)
        value = pair[0]
    product = producer(value, "MatMul", "Gemm")
    if product is None or product.inputs[1] is None or not product.inputs[1].constant:
        return []
    return [*found, product]


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


@rewrite("relocate_rs_split_axis", "Split")
def split_heads(op: Op, context: Context) -> bool:
    """Split of [p,b,h,l,d] along p, written by a Transpose [2,0,3,1,4] of a Reshape of [b,l,p*h*d]."""
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
    linear = _linear(source)
    if pieces != len(op.outputs) or (batch == 1 and not linear):
        return False
    x = context.transpose(source, (0, 2, 1))
    if batch > 1:
        origins = union(turn, op)
        x = context.reshape(x, (batch * pieces * heads, depth, 1, length), origins)
        origins = origins.union(*(p.origins for p in map(_first_product, op.outputs[:2]) if p is not None))
        order = np.arange(batch * pieces * heads).reshape(batch, pieces, heads).swapaxes(0, 1).reshape(-1)
        index = Value(context.unique("order"), order.shape, "int64", order)
        x = context.add("Gather", [x, index], [shape_of(x)], origins, {"axis": 0}, base="gather").outputs[0]
        axis = 0
    else:
        origins = union(turn, *linear)
        if depth % ALIGNMENT == 0:
            origins |= op.origins
            x, axis = context.reshape(x, (heads, pieces * depth, 1, length), origins), 1
        else:
            x, axis = context.reshape(x, (heads, depth, pieces, length), origins), 2
        for part in linear:
            part.origins |= origins
        if axis == 2:
            origins = op.origins
    attributes = {"axis": axis, "split": [shape_of(x)[axis] // pieces] * pieces}
    split = context.add("Split", [x], [(batch * heads, depth, 1, length)] * pieces, origins, attributes, base=op.name)
    for old, new in zip(list(op.outputs), split.outputs, strict=True):
        back = context.reshape(context.transpose(new, (0, 3, 2, 1)), shape_of(old))
        context.graph.replace_value(old, back)
    context.discard(op)
    return True
