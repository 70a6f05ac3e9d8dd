"""Merges and cancels neighbouring Reshapes and Transposes.

Models the toolkit rules ``fuse_two_reshape``, ``bypass_two_reshape``, ``fuse_two_transpose``, ``bypass_two_transpose``,
``fuse_transpose_reshape``, ``fuse_reshape_transpose``, ``fuse_transpose_reshape_transpose``,
``convert_reshape_to_transpose`` and ``remove_parallel_*``. Where two ops become one, the later one survives, and only
its file nodes keep a row of their own (but see :func:`fuse_two_transpose`).
"""

from __future__ import annotations

import re

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.passes.swap_transpose import BINARY, UNARY
from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value

_INSERTED = re.compile(r"_(tp|rs)(#\d+)?$")


def _inserted(op: Op) -> bool:
    """Whether a pass made this layout op, by its name."""
    return _INSERTED.search(op.name) is not None


def _feeds_product(op: Op) -> bool:
    """Whether a MatMul reads the op, at most one Reshape later."""
    readers = op.outputs[0].consumers()
    later = [last for first in readers if first.op_type == "Reshape" for last in first.outputs[0].consumers()]
    return any(other.op_type in ("exMatMul", "MatMul") for other in (*readers, *later))


def _bypass_to(op: Op, source: Value, context: Context) -> bool:
    if context.graph.is_output(op.outputs[0]) and source.producer is None:
        return False
    context.replace(op, source)
    return True


@rewrite("fuse_two_reshape", "Reshape")
def fuse_two_reshape(op: Op, context: Context) -> bool:
    """A Reshape of a Reshape reads what the first one read; back to the old shape, it goes."""
    source = op.inputs[0]
    if source is None or not known(op):
        return False
    changed = False
    for second in op.outputs[0].consumers():
        if second.op_type != "Reshape" or not known(second):
            continue
        if second.outputs[0].shape == source.shape and _bypass_to(second, source, context):
            changed = True
        elif len(op.outputs[0].uses) == 1 or all(c.op_type == "Reshape" for c in op.outputs[0].consumers()):
            second.set_input(0, source)
            changed = True
    if changed:
        context.discard(op)
    return changed


@rewrite("fuse_two_transpose", "Transpose")
def fuse_two_transpose(op: Op, context: Context) -> bool:
    """Two Transposes become one, or none where they undo each other.

    The one left stands for the file's own Transpose where a pass inserted the other behind it, but for a MatMul.
    """
    source = op.inputs[0]
    if source is None:
        return False
    changed = False
    for second in op.outputs[0].consumers():
        if second.op_type != "Transpose":
            continue
        perm = layout.compose(op.attr("perm"), second.attr("perm"))
        if layout.is_identity(perm) and _bypass_to(second, source, context):
            changed = True
        elif len(op.outputs[0].uses) == 1 or all(c.op_type == "Transpose" for c in op.outputs[0].consumers()):
            second.set_input(0, source)
            second.attributes = {**second.attributes, "perm": list(perm)}
            if _inserted(second) and not _inserted(op) and not _feeds_product(second):
                second.origins = op.origins
            changed = True
    if changed:
        context.discard(op)
    return changed


@rewrite("fuse_transpose_reshape", "Transpose")
def fuse_transpose_reshape(op: Op, context: Context) -> bool:
    """A Transpose and the Reshape behind it become one of the two where the other only moves dimensions of 1."""
    second = reader(op, context, "Reshape")
    source = op.inputs[0]
    if second is None or source is None or not known(op) or not known(second) or len(op.attr("perm")) > 4:
        return False
    before, perm, after = shape_of(source), op.attr("perm"), shape_of(second.outputs[0])
    if layout.keeps_order(before, perm):
        second.set_input(0, source)
        context.discard(op)
        return True
    whole = layout.chain_as_transpose(before, [axis for axis in perm if before[axis] != 1], after)
    if whole is None:
        return False
    op.attributes = {**op.attributes, "perm": list(whole)}
    _take_over(op, second, context)
    return True


def _take_over(first: Op, second: Op, context: Context) -> None:
    """``first`` writes what ``second`` wrote; ``second`` goes."""
    old, new = first.outputs[0], second.outputs[0]
    new.producer = first
    first.outputs = [new]
    old.producer = None
    context.graph.remove(second)


@rewrite("fuse_reshape_transpose", "Reshape")
def fuse_reshape_transpose(op: Op, context: Context) -> bool:
    """A Reshape and the Transpose behind it become one of the two where the other only moves dimensions of 1."""
    second = reader(op, context, "Transpose")
    source = op.inputs[0]
    if second is None or source is None or not known(op) or not known(second) or len(second.attr("perm")) > 4:
        return False
    before, middle, perm = shape_of(source), shape_of(op.outputs[0]), second.attr("perm")
    after = shape_of(second.outputs[0])
    if layout.keeps_order(middle, perm):
        _take_over(op, second, context)
        return True
    if not layout.only_moves_ones(before, middle):
        return False
    axes = [axis for axis, size in enumerate(before) if size != 1]
    numbering = dict(zip((axis for axis, size in enumerate(middle) if size != 1), axes))
    whole = layout.chain_as_transpose(before, [numbering[axis] for axis in perm if middle[axis] != 1], after)
    if whole is None:
        return False
    second.set_input(0, source)
    second.attributes = {**second.attributes, "perm": list(whole)}
    context.discard(op)
    return True


@rewrite("convert_reshape_to_transpose", "Reshape")
def convert_reshape_to_transpose(op: Op, context: Context) -> bool:
    """A rank-4 Reshape that only moves dimensions of 1 becomes a Transpose."""
    if not known(op):
        return False
    before, after = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    perm = layout.ones_as_transpose(before, after) if len(before) == 4 else None
    if perm is None:
        return False
    op.op_type = "Transpose"
    op.attributes = {"perm": list(perm)}
    return True


@rewrite("fuse_transpose_reshape_transpose", "Transpose")
def fuse_transpose_reshape_transpose(op: Op, context: Context) -> bool:
    """A Transpose passes through the Reshape behind it into the Transpose behind that."""
    middle = reader(op, context, "Reshape")
    last = reader(middle, context, "Transpose") if middle is not None else None
    source = op.inputs[0]
    if middle is None or last is None or source is None or not known(op) or not known(middle):
        return False
    if len(last.attr("perm")) > 4:
        return False
    swapped = layout.transpose_then_reshape(shape_of(source), op.attr("perm"), shape_of(middle.outputs[0]))
    if swapped is None:
        return False
    between, perm = swapped
    middle.set_input(0, source)
    middle.outputs[0].shape = between
    last.attributes = {**last.attributes, "perm": list(layout.compose(perm, last.attr("perm")))}
    context.discard(op)
    return True


@rewrite("remove_parallel", "Reshape", "Transpose", *UNARY, *BINARY)
def remove_parallel(op: Op, context: Context) -> bool:
    """Ops that compute the same from the same values become one, which stands for the nodes of all."""
    source = op.inputs[0]
    if source is None or len(source.uses) < 2 or len(op.outputs) != 1:
        return False
    changed = False
    for other in source.consumers():
        if other is op or other.op_type != op.op_type or other.outputs[0].shape != op.outputs[0].shape:
            continue
        same = len(other.inputs) == len(op.inputs) and all(map(_same, other.inputs, op.inputs))
        if not same or other.attributes != op.attributes or context.graph.is_output(other.outputs[0]):
            continue
        op.origins |= other.origins
        context.replace(other, op.outputs[0])
        changed = True
    return changed


def _same(a: Value | None, b: Value | None) -> bool:
    """Whether two operands are one value, or constants of equal data."""
    if a is b:
        return True
    if a is None or b is None or a.const is None or b.const is None:
        return False
    return a.const.shape == b.const.shape and bool((a.const == b.const).all())


@rewrite("remove_parallel_maxpool", "MaxPool")
def remove_parallel_maxpool(op: Op, context: Context) -> bool:
    """Equal MaxPools of one value become a single op that stands for both nodes."""
    source = op.inputs[0]
    if source is None or len(source.uses) < 2:
        return False
    for other in source.consumers():
        if other is op or other.op_type != "MaxPool" or len(other.outputs) + len(op.outputs) > 2:
            continue
        if other.attributes == op.attributes and not context.graph.is_output(other.outputs[0]):
            op.origins |= other.origins
            context.replace(other, op.outputs[0])
            return True
    return False
