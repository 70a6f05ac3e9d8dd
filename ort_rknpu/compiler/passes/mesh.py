"""Runs an op in the layout that needs the fewest Transposes around it.

Models the toolkit rules ``reduce_tp_in_mesh_forward`` and ``reduce_tp_in_mesh_backward``: an op whose operands or
readers are Transposes is moved to the other side of them wherever that leaves fewer Transposes than before.
"""

from __future__ import annotations

from collections.abc import Iterator

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.layout import Perm
from ort_rknpu.compiler.passes.swap_transpose import BINARY, UNARY, permuted_constant
from ort_rknpu.compiler.rewriting import Context, known, producer, rewrite, shape_of
from ort_rknpu.graph import Op, Value

_WITH_AXIS = ("Split", "Concat")


@rewrite("reduce_tp_in_mesh", *BINARY, *UNARY, *_WITH_AXIS)
def reduce_transposes(op: Op, context: Context) -> bool:
    """Element-wise ops, Split and Concat."""
    if not known(op):
        return False
    rank = op.outputs[0].rank
    for perm in dict.fromkeys(_candidates(op)):
        if len(perm) == rank and _delta(op, perm, context) < 0:
            _move(op, perm, context)
            return True
    return False


def _candidates(op: Op) -> Iterator[Perm]:
    """Permutations ``p`` such that computing the op before a Transpose ``p`` cancels at least one there is."""
    for value in op.inputs:
        above = producer(value, "Transpose")
        if above is not None:
            yield tuple(above.attr("perm"))
    for value in op.outputs:
        for reader in value.consumers():
            if reader.op_type == "Transpose":
                yield layout.invert(reader.attr("perm"))


def _data(op: Op) -> list[int]:
    return list(range(len(op.inputs))) if op.op_type in (*BINARY, "Concat") else [0]


def _delta(op: Op, perm: Perm, context: Context) -> int:
    """Transposes after less Transposes before, if the op works on operands un-permuted by ``perm``."""
    total = 0
    undo = layout.invert(perm)
    seen: set[Value] = set()
    for index in _data(op):
        value = op.inputs[index]
        if value is None or value in seen:
            continue
        seen.add(value)
        if value.constant:
            if permuted_constant(value, perm, context) is None:
                return 1
            continue
        if value.rank != len(perm):
            return 1
        above = producer(value, "Transpose")
        alone = len(value.consumers()) == 1 and not context.graph.is_output(value)
        if above is not None and tuple(above.attr("perm")) == perm:
            total -= alone
        elif above is not None and alone:
            continue
        elif not any(_is_transpose(reader, undo) for reader in value.consumers()):
            total += 1
    for value in op.outputs:
        others = context.graph.is_output(value)
        for reader in value.consumers():
            if reader.op_type == "Transpose" and not context.graph.is_output(value):
                total -= layout.is_identity(layout.compose(perm, reader.attr("perm")))
            else:
                others = True
        total += others
    return total


def _is_transpose(op: Op, perm: Perm) -> bool:
    return op.op_type == "Transpose" and tuple(op.attr("perm")) == perm


def _move(op: Op, perm: Perm, context: Context) -> None:
    undo = layout.invert(perm)
    made: dict[Value, Value] = {}
    for index in _data(op):
        value = op.inputs[index]
        if value is None:
            continue
        if value.constant:
            op.set_input(index, permuted_constant(value, perm, context))
            continue
        if value not in made:
            made[value] = _unpermuted(value, undo, context)
        op.set_input(index, made[value])
        if value.producer is not None:
            context.discard(value.producer)
    if op.op_type in _WITH_AXIS:
        op.attributes = {**op.attributes, "axis": perm[op.attr("axis", 0) % len(perm)]}
    for position, old in enumerate(op.outputs):
        new = Value(context.unique(f"{old.name}_mesh"), layout.permute(shape_of(old), undo), old.dtype)
        op.outputs[position] = new
        new.producer = op
        old.producer = None
        for reader in old.consumers():
            if reader.op_type != "Transpose":
                continue
            whole = layout.compose(perm, reader.attr("perm"))
            if layout.is_identity(whole):
                context.replace(reader, new)
            else:
                reader.set_input(0, new)
                reader.attributes = {**reader.attributes, "perm": list(whole)}
        if old.uses or context.graph.is_output(old):
            context.graph.add(Op("Transpose", [new], [old], {"perm": list(perm)}, name=f"{old.name}-rs_tp"))


def _unpermuted(value: Value, undo: Perm, context: Context) -> Value:
    """``value`` with its Transpose undone, by what is there already or by a new Transpose."""
    above = producer(value, "Transpose")
    source = above.inputs[0] if above is not None else None
    if above is not None and source is not None:
        whole = layout.compose(above.attr("perm"), undo)
        return source if layout.is_identity(whole) else context.transpose(source, whole, above.origins)
    for reader in value.consumers():
        if _is_transpose(reader, undo):
            return reader.outputs[0]
    return context.transpose(value, undo)
