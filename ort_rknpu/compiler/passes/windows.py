"""Turns the window partition of Swin-like models into exWindow (``fuse_reshape_tp_reshape_to_exWindow``)."""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of, union
from ort_rknpu.graph import Op


@rewrite("fuse_reshape_tp_reshape_to_exWindow", "Reshape")
def window(op: Op, context: Context) -> bool:
    """[b,h,w,c] cut into square windows (or joined from them) by a Reshape of rank 6 and a Transpose."""
    turn = reader(op, context, "Transpose")
    source = op.inputs[0]
    if turn is None or source is None or not known(op) or not known(turn) or op.outputs[0].rank != 6:
        return False
    if turn.attr("perm") != [0, 1, 3, 2, 4, 5]:
        return False
    b, i, j, k, m, c = shape_of(op.outputs[0])
    origins = union(op, turn)
    if i == k and j == m:
        # partition: [b, nh, wh, nw, ww, c]
        image, cut, mode = (b, i * j, k * m, c), (b, c, i * k, j * m), "partition"
        nhwc = context.reshape(source, image, origins)
        nchw = context.transpose(nhwc, (0, 3, 1, 2), origins)
        out = context.add("exWindow", [nchw], [cut], origins, {"mode": mode}, base="window").outputs[0]
        result = context.transpose(out, (0, 2, 3, 1), origins)
    elif i == j and k == m:
        # reverse: [b, nh, nw, wh, ww, c]
        tokens, cut, mode = (b, i * j, k * m, c), (b, c, i * k, j * m), "reverse"
        nhwc = context.reshape(source, tokens, origins)
        nchw = context.transpose(nhwc, (0, 3, 1, 2), origins)
        out = context.add("exWindow", [nchw], [cut], origins, {"mode": mode}, base="window").outputs[0]
        result = context.transpose(out, (0, 2, 3, 1), origins)
    else:
        return False
    context.replace(turn, context.reshape(result, shape_of(turn.outputs[0]), origins))
    return True
