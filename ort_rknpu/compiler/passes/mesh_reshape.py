"""Runs an op on the shape that needs the fewest Reshapes around it.

Models the toolkit rules ``reduce_reshape_op_around_split``, ``reduce_reshape_op_around_concat``,
``remove_reshape_before_add`` and ``fuse_transformer_FFN_reshape``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.passes.swap_transpose import BINARY
from ort_rknpu.compiler.rewriting import Context, known, producer, rewrite, shape_of, union
from ort_rknpu.graph import Op, Value


@rewrite("reduce_reshape", *BINARY, "Split", "Concat")
def reduce_reshapes(op: Op, context: Context) -> bool:
    """Element-wise ops of run-time operands of one shape, Split and Concat, of rank 4."""
    if not known(op) or op.outputs[0].rank != 4 or any(v is None or v.constant for v in op.inputs[:1]):
        return False
    data = list(dict.fromkeys(v for v in _operands(op) if v is not None))
    if any(v.constant for v in data) or (op.op_type in BINARY and len({v.shape for v in data}) > 1):
        return False
    for source in dict.fromkeys(_candidates(op, data)):
        target = _axis_in(op, data[0], source)
        if target is not None and _delta(op, data, source, target, context) < 0:
            _move(op, data, source, target, context)
            return True
    return False


def _operands(op: Op) -> list[Value | None]:
    return list(op.inputs[:1]) if op.op_type == "Split" else list(op.inputs)


def _candidates(op: Op, data: list[Value]) -> Iterator[layout.Sizes]:
    """Shapes of the first operand that would cancel a Reshape there is."""
    above = producer(data[0], "Reshape")
    if above is not None and above.inputs[0] is not None and above.inputs[0].rank == 4:
        yield shape_of(above.inputs[0])
    for value in op.outputs:
        for reader in value.consumers():
            if reader.op_type == "Reshape" and reader.outputs[0].rank == 4:
                shape = list(shape_of(reader.outputs[0]))
                if op.op_type in ("Split", "Concat"):
                    whole = _scaled(shape_of(data[0]), shape_of(value), tuple(shape), op.attr("axis", 0) % 4)
                    if whole is None:
                        continue
                    shape = list(whole)
                yield tuple(shape)


def _scaled(ours: layout.Sizes, piece: layout.Sizes, target: layout.Sizes, axis: int) -> layout.Sizes | None:
    """The shape of the uncut operand where one piece has shape ``target``."""
    place = layout.same_dimension(piece, target, axis)
    if place is None:
        return None
    return tuple(ours[axis] if i == place else size for i, size in enumerate(target))


def _axis_in(op: Op, value: Value, source: layout.Sizes) -> int | None:
    """The axis the op would work along on ``source`` (-1 for none needed), or None where it cannot."""
    if source == shape_of(value):
        return None
    if op.op_type in BINARY:
        return -1
    return layout.same_dimension(shape_of(value), source, op.attr("axis", 0) % 4)


def _seen_as(op: Op, value: Value, source: layout.Sizes, axis: int) -> layout.Sizes:
    """A value's shape beside an operand of shape ``source``."""
    if axis < 0:
        return source
    own = shape_of(value)[op.attr("axis", 0) % 4]
    return tuple(own if i == axis else size for i, size in enumerate(source))


def _delta(op: Op, data: list[Value], source: layout.Sizes, axis: int, context: Context) -> int:
    total = 0
    for value in data:
        above = producer(value, "Reshape")
        alone = len(value.consumers()) == 1 and not context.graph.is_output(value)
        if above is not None and shape_of(above.inputs[0]) == _seen_as(op, value, source, axis):
            total -= alone
        elif not (above is not None and alone):
            total += 1
    for value in op.outputs:
        others = context.graph.is_output(value)
        for reader in value.consumers():
            if reader.op_type == "Reshape":
                total -= shape_of(reader.outputs[0]) == _seen_as(op, value, source, axis)
            else:
                others = True
        total += others
    return total


def _move(op: Op, data: list[Value], source: layout.Sizes, axis: int, context: Context) -> None:
    views = {value: _seen_as(op, value, source, axis) for value in (*data, *op.outputs)}
    origins = union(*_cancelled(data, op, views))
    if op.op_type == "Split":
        # the rule around a Split names the Split itself too
        origins |= op.origins
        op.origins = origins
    operands = len(_operands(op))
    for index, value in enumerate(list(op.inputs)[:operands]):
        if value is None:
            continue
        above = producer(value, "Reshape")
        start, own = value, origins
        if above is not None and above.inputs[0] is not None:
            start, own = above.inputs[0], above.origins
        op.set_input(index, context.reshape(start, views[value], own))
    for value in data:
        if value.producer is not None:
            context.discard(value.producer)
    if axis >= 0:
        op.attributes = {**op.attributes, "axis": axis}
    for position, old in enumerate(op.outputs):
        new = Value(context.unique(f"{old.name}_mesh"), views[old], old.dtype)
        op.outputs[position] = new
        new.producer = op
        old.producer = None
        for reader in old.consumers():
            if reader.op_type == "Reshape":
                if shape_of(reader.outputs[0]) == views[old]:
                    context.replace(reader, new)
                else:
                    reader.set_input(0, new)
        if old.uses or context.graph.is_output(old):
            context.graph.add(Op("Reshape", [new], [old], name=f"{old.name}-rs", origins=origins))


def _cancelled(data: list[Value], op: Op, views: dict[Value, layout.Sizes]) -> Iterator[Op]:
    """The Reshapes that go; those that come instead stand for the nodes of all of them."""
    for value in data:
        above = producer(value, "Reshape")
        if above is not None and shape_of(above.inputs[0]) == views[value] and len(value.consumers()) == 1:
            yield above
    for value in op.outputs:
        for reader in value.consumers():
            if reader.op_type == "Reshape" and shape_of(reader.outputs[0]) == views[value]:
                yield reader
