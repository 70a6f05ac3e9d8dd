"""Runs ops in the layout that needs the fewest Transposes around them.

Models the toolkit rules ``reduce_tp_in_mesh_forward`` and ``reduce_tp_in_mesh_backward``: an op, together with the
ops of one run-time operand below it, is moved to the other side of the Transposes around it wherever that leaves
fewer Transposes than before.
"""

from __future__ import annotations

from collections.abc import Iterator

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.layout import Perm
from ort_rknpu.compiler.passes.swap_transpose import BINARY, UNARY, permuted_constant
from ort_rknpu.compiler.rewriting import Context, known, producer, rewrite, shape_of, union
from ort_rknpu.graph import Op, Value

_WITH_AXIS = ("Split", "Concat", "exSoftmax13")
_SINGLE = (*UNARY, *BINARY, "exSoftmax13", "exNorm")


@rewrite("reduce_tp_in_mesh", *BINARY, *UNARY, "Split", "Concat")
def reduce_transposes(op: Op, context: Context) -> bool:
    """Element-wise ops, Split and Concat."""
    rank = op.outputs[0].rank
    perms = [perm for perm in dict.fromkeys(_candidates(op, (op,))) if len(perm) == rank]
    members = _grow(op)
    if len(members) > 1:
        perms += [p for p in dict.fromkeys(_candidates(op, members)) if len(p) == rank and p not in perms]
    if not perms or not all(known(member) for member in members):
        return False
    choices = [(group, perm) for group in dict.fromkeys(((op,), members)) for perm in perms]
    deltas = [_delta(group, perm, context) for group, perm in choices]
    least = min(deltas)
    if least >= 0:
        return False
    group, perm = choices[deltas.index(least)]
    _move(group, perm, context)
    return True


def _grow(seed: Op) -> tuple[Op, ...]:
    """The op and the ops of one run-time operand that hang below it."""
    members = {seed: None}
    queue = list(seed.outputs)
    while queue:
        value = queue.pop()
        for reader in value.consumers():
            if reader.op_type in _SINGLE and reader not in members and _run_time(reader) == [value]:
                members[reader] = None
                queue.extend(reader.outputs)
    return tuple(members)


def _data(op: Op) -> list[int]:
    return list(range(len(op.inputs))) if op.op_type in (*BINARY, "Concat") else [0]


def _run_time(op: Op) -> list[Value]:
    return [v for i in _data(op) if (v := op.inputs[i]) is not None and not v.constant]


def _candidates(seed: Op, members: tuple[Op, ...]) -> Iterator[Perm]:
    """Permutations ``p`` such that computing before a Transpose ``p`` cancels at least one there is."""
    for value in seed.inputs:
        above = producer(value, "Transpose")
        if above is not None:
            yield tuple(above.attr("perm"))
    for member in members:
        for value in member.outputs:
            for reader in value.consumers():
                if reader.op_type == "Transpose":
                    yield layout.invert(reader.attr("perm"))


def _delta(members: tuple[Op, ...], perm: Perm, context: Context) -> int:
    """Transposes after less Transposes before, if the ops work on operands un-permuted by ``perm``."""
    total = 0
    undo = layout.invert(perm)
    for value in dict.fromkeys(_run_time(members[0])):
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
    for member in members:
        if any(v.rank != len(perm) for v in member.outputs) or not _allows(member, perm, context):
            return 1
        for value in member.outputs:
            others = context.graph.is_output(value)
            for reader in value.consumers():
                if reader in members:
                    continue
                if reader.op_type == "Transpose" and not context.graph.is_output(value):
                    total -= layout.is_identity(layout.compose(perm, reader.attr("perm")))
                else:
                    others = True
            total += others
    return total


def _allows(op: Op, perm: Perm, context: Context) -> bool:
    """Whether constants and axis of an op can be permuted."""
    for index in _data(op):
        value = op.inputs[index]
        if value is not None and value.constant and permuted_constant(value, perm, context) is None:
            return False
    if op.op_type == "exNorm":
        return op.attr("axes") == [1] and perm[1] == 1
    return op.op_type != "exSoftmax13" or perm[op.attr("axis")] in (1, 3)


def _is_transpose(op: Op, perm: Perm) -> bool:
    return op.op_type == "Transpose" and tuple(op.attr("perm")) == perm


def _move(members: tuple[Op, ...], perm: Perm, context: Context) -> None:
    undo = layout.invert(perm)
    origins = union(*_cancelled(members, perm))
    made: dict[Value, Value] = {}
    for value in dict.fromkeys(_run_time(members[0])):
        made[value] = _unpermuted(value, undo, origins, context)
    for member in members:
        for index in _data(member):
            operand = member.inputs[index]
            if operand is None:
                continue
            if operand.constant:
                member.set_input(index, permuted_constant(operand, perm, context))
            elif operand in made:
                member.set_input(index, made[operand])
        if member.op_type in _WITH_AXIS:
            member.attributes = {**member.attributes, "axis": perm[member.attr("axis", 0) % len(perm)]}
        for position, written in enumerate(member.outputs):
            made[written] = _rewritten_output(member, position, perm, members, origins, context)
    for old in made:
        if old.producer is not None:
            context.discard(old.producer)


def _cancelled(members: tuple[Op, ...], perm: Perm) -> Iterator[Op]:
    """The Transposes that go; those that come instead stand for the nodes of all of them."""
    for value in _run_time(members[0]):
        above = producer(value, "Transpose")
        if above is not None and tuple(above.attr("perm")) == perm and len(value.consumers()) == 1:
            yield above
    for member in members:
        for value in member.outputs:
            for reader in value.consumers():
                if reader.op_type == "Transpose" and layout.is_identity(layout.compose(perm, reader.attr("perm"))):
                    yield reader


def _rewritten_output(
    member: Op, position: int, perm: Perm, members: tuple[Op, ...], origins: frozenset[int], context: Context
) -> Value:
    """Lets a member write its output un-permuted; readers outside get it permuted back."""
    old = member.outputs[position]
    new = Value(context.unique(f"{old.name}_mesh"), layout.permute(shape_of(old), layout.invert(perm)), old.dtype)
    member.outputs[position] = new
    new.producer = member
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
    if any(reader not in members for reader in old.consumers()) or context.graph.is_output(old):
        context.graph.add(Op("Transpose", [new], [old], {"perm": list(perm)}, name=f"{old.name}_tp", origins=origins))
    return new


def _unpermuted(value: Value, undo: Perm, origins: frozenset[int], context: Context) -> Value:
    """``value`` with its Transpose undone, by what is there already or by a new Transpose."""
    above = producer(value, "Transpose")
    source = above.inputs[0] if above is not None else None
    if above is not None and source is not None:
        whole = layout.compose(above.attr("perm"), undo)
        return source if layout.is_identity(whole) else context.transpose(source, whole, above.origins)
    for reader in value.consumers():
        if _is_transpose(reader, undo):
            reader.origins |= origins
            return reader.outputs[0]
    return context.transpose(value, undo, origins)
