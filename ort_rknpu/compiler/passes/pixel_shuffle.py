"""DepthToSpace spelled as Reshape, Transpose and Reshape of rank 6 becomes a ConvTranspose; a Tile of 1s an Expand."""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler.passes.convolutions import ANY_STRIDE_UP
from ort_rknpu.compiler.rewriting import Context, known, numbers, reader, rewrite, shape_of, union
from ort_rknpu.graph import Op, Value


@rewrite("replace_pixel_shuffle", "Reshape")
def pixel_shuffle(op: Op, context: Context) -> bool:
    """[b,c,r,r,h,w] by [0,1,4,2,5,3] (or [b,r,r,c,h,w] by [0,3,4,1,5,2])."""
    turn = reader(op, context, "Transpose")
    last = reader(turn, context, "Reshape") if turn is not None else None
    source = op.inputs[0]
    if turn is None or last is None or source is None or source.rank != 4 or not known(op) or not known(last):
        return False
    middle, out, perm = shape_of(op.outputs[0]), shape_of(last.outputs[0]), list(turn.attr("perm"))
    if len(middle) != 6 or len(out) != 4:
        return False
    b, c, r, s, h, w = middle if perm == [0, 1, 4, 2, 5, 3] else tuple(middle[i] for i in (0, 3, 1, 2, 4, 5))
    if perm not in ([0, 1, 4, 2, 5, 3], [0, 3, 4, 1, 5, 2]) or r != s:
        return False
    if shape_of(source) != (b, c * r * r, h, w) or out != (b, c, h * r, w * r):
        return False
    if r not in (1, 2, 4, 8) and not context.has(ANY_STRIDE_UP):
        return False
    weight = Value(context.unique("kernel"), (c * r * r, c, r, r), source.dtype, constant=True)
    attributes = {"kernel_shape": [r, r], "strides": [r, r]}
    new = context.add("ConvTranspose", [source, weight], [out], union(op, turn, last), attributes, base=turn.name)
    context.replace(last, new.outputs[0])
    return True


@rewrite("convert_tile_to_expand", "Tile")
def tile_to_expand(op: Op, context: Context) -> bool:
    """Repeating dimensions of 1 only is an Expand."""
    source, repeats = op.inputs[0], numbers(op.input(1))
    if source is None or repeats is None or not known(op):
        return False
    shape = shape_of(source)
    if any(count != 1 and size != 1 for count, size in zip(repeats, shape)):
        return False
    target = Value(context.unique("shape"), (len(shape),), "int64", np.array(shape_of(op.outputs[0])))
    op.op_type = "Expand"
    op.set_inputs([source, target])
    return True
