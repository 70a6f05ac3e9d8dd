"""Turns LSTM and GRU with the Squeeze or Transpose and Reshape behind them into exLSTM and exGRU.

Models ``fuse_lstm_transpose_reshape`` and ``fuse_gru_transpose_reshape``.
"""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler.passes.slices import slice_of
from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value

BATCH = 4
"""Batches of a recurrent op come in packs of so many (measured 2.3.2: probes LSTM batch)."""

BATCH_BY_CONCAT = "batch_by_concat"
"""Feature of targets that fill up a batch with a Concat instead of a Pad."""
ALWAYS = "recurrent_always"
"""Feature of toolkits that make an exLSTM or exGRU of every LSTM and GRU."""


@rewrite("convert_gru_to_exgru", "LSTM", "GRU", requires=ALWAYS)
def convert(op: Op, context: Context) -> bool:
    """LSTM and GRU take the names of the toolkit's own ops."""
    op.op_type = "ex" + op.op_type
    return True


@rewrite("align_lstm_batch", "LSTM")
def align_batch(op: Op, context: Context) -> bool:
    """A batch that is neither 1 nor a multiple of 4 is filled up before, by a Pad or a Concat, and cut behind."""
    source = op.inputs[0]
    if source is None or not known(op) or source.constant or op.attr("layout", 0):
        return False
    s, n, width = shape_of(source)
    if n == 1 or n % BATCH == 0:
        return False
    full = -(-n // BATCH) * BATCH
    amounts = Value(context.unique("pads"), (6,), "int64", np.array([0, 0, 0, 0, full - n, 0]))
    if BATCH_BY_CONCAT in context.features:
        rest = Value(context.unique("zeros"), (s, full - n, width), source.dtype, constant=True)
        joined = context.add("Concat", [source, rest], [(s, full, width)], op.origins, {"axis": 1}, base="fill")
        padded = joined.outputs[0]
    else:
        padded = context.add("Pad", [source, amounts], [(s, full, width)], op.origins, base="pad").outputs[0]
    inputs: list[Value | None] = [padded, *op.inputs[1:]]
    for index in (5, 6):
        state = op.input(index)
        if state is None:
            continue
        shape = (shape_of(state)[0], full, shape_of(state)[2])
        if state.constant:
            inputs[index] = context.constant(state, shape)
        else:
            inputs[index] = context.add("Pad", [state, amounts], [shape], op.origins, base="pad").outputs[0]
    op.set_inputs(inputs)
    for position, old in enumerate(op.outputs):
        axis = len(shape_of(old)) - 2
        whole = (*shape_of(old)[:axis], full, shape_of(old)[-1])
        new = Value(context.unique(f"{old.name}_full"), whole, old.dtype)
        op.outputs[position] = new
        new.producer = op
        old.producer = None
        if old.uses or context.graph.is_output(old):
            context.graph.replace_value(old, slice_of(new, axis, 0, n, op.origins, context, op.name))
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
