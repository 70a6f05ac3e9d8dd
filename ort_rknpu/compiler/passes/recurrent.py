"""Turns LSTM and GRU with the Squeeze or Transpose and Reshape behind them into exLSTM and exGRU.

Models ``fuse_lstm_transpose_reshape`` and ``fuse_gru_transpose_reshape``.
"""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of
from ort_rknpu.graph import Op

ALWAYS = "recurrent_always"
"""Feature of toolkits that make an exLSTM or exGRU of every LSTM and GRU."""


@rewrite("convert_gru_to_exgru", "LSTM", "GRU", requires=ALWAYS)
def convert(op: Op, context: Context) -> bool:
    """LSTM and GRU take the names of the toolkit's own ops."""
    op.op_type = "ex" + op.op_type
    return True


@rewrite("fuse_lstm_transpose_reshape", "LSTM", "GRU")
def recurrent(op: Op, context: Context) -> bool:
    """[s,dirs,n,h] brought to [s,n,dirs*h] by a Reshape, or a Transpose and a Reshape."""
    if op.attr("direction", "forward") in ("reverse", b"reverse") or not known(op) or not op.outputs:
        return False
    tail = reader(op, context, "Reshape", "Transpose")
    parts = []
    if tail is not None and tail.op_type == "Transpose":
        if tail.attr("perm") != [0, 2, 1, 3]:
            return False
        parts.append(tail)
        tail = reader(tail, context, "Reshape")
    if tail is None:
        return False
    s, directions, n, hidden = shape_of(op.outputs[0])
    if shape_of(tail.outputs[0]) != (s, n, directions * hidden) or (directions > 1 and n > 1 and not parts):
        return False
    op.op_type = "ex" + op.op_type
    op.origins |= tail.origins.union(*(part.origins for part in parts))
    old, new = op.outputs[0], tail.outputs[0]
    tail.set_inputs([])
    context.graph.remove(tail)
    for part in reversed(parts):
        context.graph.remove(part)
    old.producer = None
    op.outputs[0] = new
    new.producer = op
    return True
