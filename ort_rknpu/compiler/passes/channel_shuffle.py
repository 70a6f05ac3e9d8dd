"""Channel shuffles spelled as layout ops become a permutation of channels.

Models ``replace_inner_dim_shuffle_tp_rs_to_rs_gather``, ``gather_to_conv``, ``fuse_conv_gather`` and
``fuse_reshape_into_conv``.
"""

from __future__ import annotations

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("replace_inner_dim_shuffle_tp_rs_to_rs_gather", "Reshape")
def shuffle_to_conv(op: Op, context: Context) -> bool:
    """Reshape, Transpose, Reshape that only reorder the channels of [n,c,h,w] become a 1x1 Conv."""
    turn = reader(op, context, "Transpose")
    last = reader(turn, context, "Reshape") if turn is not None else None
    source = op.inputs[0]
    if turn is None or last is None or source is None or not all(map(known, (op, turn, last))):
        return False
    before, middle, after = shape_of(source), shape_of(op.outputs[0]), shape_of(last.outputs[0])
    if len(before) != 4 or before != after or before[2] * before[3] == 1:
        return False
    parts = layout.refine(before, middle)
    if parts is None or any(len(parts.before[axis]) > 1 for axis in (0, 2, 3)) or len(parts.before[1]) < 2:
        return False
    if any(len(atoms) > 1 for atoms in parts.after):
        return False
    owner = {atom: axis for axis, atoms in enumerate(parts.before) for atom in atoms}
    moved = [atom for axis in turn.attr("perm") for atom in parts.after[axis]]
    if [owner[atom] for atom in moved] != sorted(owner[atom] for atom in moved):
        return False
    c = before[1]
    kernel = Value(context.unique("shuffle"), (c, c, 1, 1), source.dtype, constant=True)
    conv = context.add("Conv", [source, kernel], [after], turn.origins, {"kernel_shape": [1, 1]}, base=turn.name)
    context.replace(last, conv.outputs[0])
    return True


@rewrite("fuse_reshape_into_conv", "Transpose")
def flatten_into_conv(op: Op, context: Context) -> bool:
    """A Transpose before everything is flattened for a constant 1x1 Conv or exMatMul goes into the weights."""
    flat = reader(op, context, "Reshape")
    product = reader(flat, context, "Conv", "exMatMul") if flat is not None else None
    source = op.inputs[0]
    if flat is None or product is None or source is None or not known(op) or not known(flat):
        return False
    shape = shape_of(flat.outputs[0])
    weight = product.inputs[1] if product.op_type == "Conv" else product.inputs[0]
    if weight is None or not weight.constant or product.attr("group", 1) != 1:
        return False
    if len(shape) != 4 or shape[2:] != (1, 1) or shape[0] != shape_of(source)[0] or op.attr("perm")[0] != 0:
        return False
    product.origins |= op.origins
    flat.set_input(0, source)
    context.discard(op)
    return True
