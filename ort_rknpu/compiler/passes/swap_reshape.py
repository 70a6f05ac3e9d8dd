"""Moves Reshapes past Transposes, element-wise ops, norms and softmax so that they meet others and cancel.

Models ``swap_transpose_reshape``, ``swap_reshape_transpose_v2``, ``swap_reshape_<op>`` and ``swap_<op>_reshape``.
"""

from __future__ import annotations

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.passes.swap_transpose import UNARY
from ort_rknpu.compiler.rewriting import Context, known, producer, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("swap_transpose_reshape", "Transpose")
def transpose_down(op: Op, context: Context) -> bool:
    """Transpose, then Reshape: the Reshape first, where it meets another Reshape above."""
    second = reader(op, context, "Reshape")
    source = op.inputs[0]
    if second is None or source is None or not known(op) or not known(second):
        return False
    if producer(source, "Reshape") is None or len(source.uses) > 1:
        return False
    swapped = layout.transpose_then_reshape(shape_of(source), op.attr("perm"), shape_of(second.outputs[0]))
    if swapped is None:
        return False
    between, perm = swapped
    _exchange(op, second, between, context)
    op.attributes = {**op.attributes, "perm": list(perm)}
    return True


def _exchange(first: Op, second: Op, between: layout.Sizes, context: Context) -> None:
    """Lets ``second`` run before ``first`` with a value of shape ``between`` in the middle."""
    source, out = first.inputs[0], second.outputs[0]
    middle = Value(context.unique(f"{out.name}_sw"), between, out.dtype)
    first.outputs[0].producer = None
    second.set_inputs([source])
    second.outputs = [middle]
    middle.producer = second
    first.set_inputs([middle])
    first.outputs = [out]
    out.producer = first


@rewrite("swap_reshape_transpose_v2", "Reshape")
def transpose_up(op: Op, context: Context) -> bool:
    """Reshape, then Transpose: the Transpose first, where the Reshape meets another Reshape below."""
    second = reader(op, context, "Transpose")
    source = op.inputs[0]
    if second is None or source is None or not known(op) or not known(second):
        return False
    swapped = layout.reshape_then_transpose(shape_of(source), shape_of(op.outputs[0]), second.attr("perm"))
    if swapped is None:
        return False
    if reader(second, context, "Reshape") is None and producer(source, "exNorm", "exMatMul", "Transpose") is None:
        return False
    perm, between = swapped
    _exchange(op, second, between, context)
    second.attributes = {**second.attributes, "perm": list(perm)}
    return True


@rewrite("swap_reshape_op", *UNARY, "exNorm")
def between_reshapes(op: Op, context: Context) -> bool:
    """An op between Reshapes that undo each other works on the shape outside."""
    first, last = producer(op.inputs[0], "Reshape"), reader(op, context, "Reshape")
    if first is None or last is None or len(first.outputs[0].uses) > 1 or not known(op) or not known(first):
        return False
    source = first.inputs[0]
    if source is None or source.rank != 4:
        return False
    before, inner = shape_of(source), shape_of(op.inputs[0])
    if op.op_type == "exNorm" and (op.attr("axes") != [1] or before[:2] != inner[:2]):
        return False
    if shape_of(last.outputs[0]) != before and op.op_type != "exNorm":
        return False
    op.set_input(0, source)
    op.outputs[0].shape = before
    context.discard(first)
    return True
