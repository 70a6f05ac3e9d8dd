"""Moves Reshapes past Transposes, element-wise ops, norms and softmax so that they meet others and cancel.

Models ``swap_transpose_reshape``, ``swap_reshape_transpose_v2``, ``swap_reshape_<op>`` and ``swap_<op>_reshape``.
"""

from __future__ import annotations

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.passes.swap_transpose import BINARY, UNARY, merges_upward
from ort_rknpu.compiler.passes.wrap_rank import align
from ort_rknpu.compiler.rewriting import Context, known, producer, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value

ALIGNMENT = 4
"""Channels that have to fill whole packs for a Reshape of n and c to keep memory as it is (measured 2.3.2)."""


def keeps_memory(before: layout.Sizes, after: layout.Sizes) -> bool:
    """Whether a rank-4 Reshape leaves n and c alone, or h and w with both c in whole packs."""
    if len(before) != 4 or len(after) != 4:
        return False
    if before[:2] == after[:2]:
        return True
    return before[2:] == after[2:] and before[1] % ALIGNMENT == 0 and after[1] % ALIGNMENT == 0


def _compact(shape: layout.Sizes) -> layout.Sizes:
    """A rank-4 shape with its 1s where the compiler puts them: [a,b,1,1], [a,b,1,c]."""
    full = [size for size in shape if size != 1]
    if len(full) == 4:
        return tuple(full)
    if len(full) == 3:
        return (full[0], full[1], 1, full[2])
    return tuple([*full, 1, 1, 1, 1][:4])


@rewrite("swap_transpose_reshape", "Transpose")
def transpose_down(op: Op, context: Context) -> bool:
    """Transpose, then Reshape, both of rank 4: the Reshape first.

    Not where that makes a copy of a harmless Reshape, unless another Transpose follows to meet.
    """
    second = reader(op, context, "Reshape")
    source = op.inputs[0]
    if second is None or source is None or not known(op) or not known(second):
        return False
    before, inner, after = shape_of(source), shape_of(op.outputs[0]), shape_of(second.outputs[0])
    if len(before) != 4 or len(after) != 4 or merges_upward(op) or reader(second, context, "Reshape") is not None:
        return False
    swapped = layout.transpose_then_reshape(before, op.attr("perm"), after)
    if swapped is None:
        return False
    between, perm = swapped
    compact = _compact(between)
    meets = any(below.op_type == "Transpose" for below in second.outputs[0].consumers())
    if not meets and keeps_memory(inner, after) and not keeps_memory(before, compact):
        return False
    order = [axis for axis in perm if between[axis] != 1]
    full = [axis for axis, size in enumerate(between) if size != 1]
    places = [axis for axis, size in enumerate(compact) if size != 1]
    whole = layout.chain_as_transpose(compact, [places[full.index(axis)] for axis in order], after)
    if whole is None:
        return False
    _exchange(op, second, compact, context)
    op.attributes = {**op.attributes, "perm": list(whole)}
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
    """Reshape, then Transpose: the Transpose first, where another Reshape follows or the Reshape lowers the rank."""
    second = reader(op, context, "Transpose")
    source = op.inputs[0]
    if second is None or source is None or source.producer is None or not known(op) or not known(second):
        return False
    lowers_rank = (
        source.rank == 4
        and (op.outputs[0].rank or 0) < 4
        and layout.only_moves_ones(shape_of(source), shape_of(op.outputs[0]))
        and not context.graph.is_output(second.outputs[0])
    )
    meets = source.producer.op_type in ("Transpose", "exMatMul") and len(source.uses) == 1
    if not (reader(second, context, "Reshape") is not None or lowers_rank or meets):
        return False
    swapped = layout.reshape_then_transpose(shape_of(source), shape_of(op.outputs[0]), second.attr("perm"))
    if swapped is None:
        return False
    perm, between = swapped
    if source.rank != 4 and perm[0] != 0:
        return False
    _exchange(op, second, between, context)
    second.attributes = {**second.attributes, "perm": list(perm)}
    return True


@rewrite("fuse_transpose_reshape", "Transpose")
def ones_below_transpose(op: Op, context: Context) -> bool:
    """The 1s between a Transpose and a Reshape stand where the Reshape becomes harmless."""
    second = reader(op, context, "Reshape")
    if second is None or not known(op) or not known(second) or op.outputs[0].rank != 4:
        return False
    if layout.only_moves_ones(shape_of(op.outputs[0]), shape_of(second.outputs[0])):
        return False
    inner, after = shape_of(op.outputs[0]), align(shape_of(second.outputs[0]), 4)
    if len(shape_of(second.outputs[0])) == 3:
        n, c, w = shape_of(second.outputs[0])
        after = (n, c, 1, w)
    placed = _harmless(inner, after)
    if placed is None:
        return False
    perm = layout.chain_as_transpose(
        shape_of(op.inputs[0]), [a for a in op.attr("perm") if shape_of(op.inputs[0])[a] != 1], placed
    )
    if perm is None:
        return False
    op.attributes = {**op.attributes, "perm": list(perm)}
    op.outputs[0].shape = placed
    return True


@rewrite("fuse_reshape_transpose", "Reshape")
def ones_above_transpose(op: Op, context: Context) -> bool:
    """The 1s between a Reshape and a Transpose stand where the Reshape becomes harmless."""
    second = reader(op, context, "Transpose")
    if second is None or not known(op) or not known(second) or op.outputs[0].rank != 4:
        return False
    before, inner = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    placed = _harmless(inner, before)
    if placed is None:
        return False
    full = [axis for axis, size in enumerate(inner) if size != 1]
    places = [axis for axis, size in enumerate(placed) if size != 1]
    order = [places[full.index(axis)] for axis in second.attr("perm") if inner[axis] != 1]
    perm = layout.chain_as_transpose(placed, order, shape_of(second.outputs[0]))
    if perm is None:
        return False
    op.outputs[0].shape = placed
    second.attributes = {**second.attributes, "perm": list(perm)}
    return True


def _harmless(inner: layout.Sizes, other: layout.Sizes) -> layout.Sizes | None:
    """``inner`` with its 1s moved so that the Reshape between it and ``other`` keeps memory, or None."""
    full = [size for size in inner if size != 1]
    if len(other) != 4 or len(full) == 4 or keeps_memory(inner, other):
        return None
    for fixed in (2, 0):
        kept = other[fixed : fixed + 2]
        rest = [size for size in kept if size != 1]
        count = len(rest)
        if fixed == 2:
            if (rest and full[-count:] != rest) or len(full) - count > 2:
                continue
            lead = full[: len(full) - count]
            placed = (*((*lead, 1) if len(lead) == 1 else lead or (1, 1)), *kept)
            if len(lead) == 1:
                placed = (1, lead[0], *kept)
        else:
            if full[:count] != rest or len(full) - count > 2:
                continue
            tail = full[count:]
            placed = (*kept, *((1, *tail) if len(tail) == 1 else tail or (1, 1)))
        if len(placed) == 4 and keeps_memory(placed, other):
            return placed
    return None


@rewrite("swap_reshape_op", "Reshape")
def reshape_down(op: Op, context: Context) -> bool:
    """Reshape, then an element-wise op or softmax, of rank 4: the op first, its constants reshaped alike."""
    following = reader(op, context, *UNARY, *BINARY, "exSoftmax13", "Softmax")
    source = op.inputs[0]
    if following is None or source is None or source.rank != 4 or not known(op) or not known(following):
        return False
    if _lifts(source, shape_of(op.outputs[0])):
        return False
    before, inner = shape_of(source), shape_of(op.outputs[0])
    if len(inner) > 4 or shape_of(following.outputs[0]) != inner:
        return False
    inputs: list[Value | None] = list(following.inputs)
    for index, value in enumerate(following.inputs):
        if value is op.outputs[0]:
            inputs[index] = source
        elif following.op_type in BINARY:
            moved = _reshaped_constant(value, inner, before, context)
            if moved is None:
                return False
            inputs[index] = moved
    if following.op_type in ("exSoftmax13", "Softmax"):
        axis = _same_axis(inner, before, following.attr("axis", -1) % len(inner))
        if axis is None:
            return False
        following.attributes = {**following.attributes, "axis": axis}
    following.set_inputs(inputs)
    out = following.outputs[0]
    middle = Value(context.unique(f"{out.name}_sw"), before, out.dtype)
    following.outputs = [middle]
    middle.producer = following
    op.outputs[0].producer = None
    op.set_inputs([middle])
    op.outputs = [out]
    out.producer = op
    return True


def _lifts(piece: Value, after: layout.Sizes) -> bool:
    """Whether a Reshape of one piece of a Split can move above the Split with those of the other pieces."""
    split = producer(piece, "Split")
    if split is None or piece.rank != 4:
        return False
    return layout.same_dimension(shape_of(piece), after, split.attr("axis", 0) % 4) is not None


@rewrite("swap_op_reshape", *UNARY, *BINARY)
def reshape_up(op: Op, context: Context) -> bool:
    """An element-wise op between a Split and a Reshape: the Reshape first, to meet those of the other pieces."""
    below = reader(op, context, "Reshape")
    run_time = [v for v in op.inputs if v is not None and not v.constant]
    if below is None or len(run_time) != 1 or producer(run_time[0], "Split") is None or not known(op):
        return False
    source, after = run_time[0], shape_of(below.outputs[0])
    if len(source.uses) > 1 or source.shape != op.outputs[0].shape or source.rank != 4 or len(after) != 4:
        return False
    if not _lifts(source, after):
        return False
    inputs: list[Value | None] = []
    for value in op.inputs:
        moved = None if value is None else value
        if value is not None and value.constant and op.op_type in BINARY:
            moved = _reshaped_constant(value, shape_of(source), after, context)
            if moved is None:
                return False
        inputs.append(moved)
    turned = Value(context.unique(f"{source.name}_rs"), after, source.dtype)
    op.outputs[0].producer = None
    out = below.outputs[0]
    below.set_inputs([source])
    below.outputs = [turned]
    turned.producer = below
    op.set_inputs([turned if v is source else v for v in inputs])
    op.outputs = [out]
    out.producer = op
    return True


def _same_axis(inner: layout.Sizes, before: layout.Sizes, axis: int) -> int | None:
    """The axis of ``before`` that is axis ``axis`` of ``inner`` unchanged, if softmax can run along it."""
    parts = layout.refine(inner, before)
    if parts is None or not parts.before[axis]:
        return None
    for place, atoms in enumerate(parts.after):
        if atoms == parts.before[axis] and place in (1, 3):
            return place
    return None


def _reshaped_constant(
    value: Value | None, inner: layout.Sizes, before: layout.Sizes, context: Context
) -> Value | None:
    """A constant that broadcasts against ``inner``, as it broadcasts against ``before``."""
    if value is None or not value.constant:
        return None
    shape = align(shape_of(value), len(inner))
    if all(size == 1 for size in shape):
        return value
    parts = layout.refine(inner, before)
    if parts is None:
        return None
    used = {atom for axis, size in enumerate(shape) if size != 1 for atom in parts.before[axis]}
    target = []
    for axis, atoms in enumerate(parts.after):
        inside = [atom in used for atom in atoms]
        if any(inside) and not all(inside):
            return context.constant(value, before)
        target.append(before[axis] if any(inside) else 1)
    return context.reshape(value, target)


@rewrite("swap_reshape_norm", "exNorm")
def norm_between_reshapes(op: Op, context: Context) -> bool:
    """An exNorm over c between Reshapes that leave n and c alone works on the shape outside."""
    first, last = producer(op.inputs[0], "Reshape"), reader(op, context, "Reshape")
    if first is None or last is None or len(first.outputs[0].uses) > 1 or not known(op) or not known(first):
        return False
    source = first.inputs[0]
    if source is None or source.rank != 4 or op.attr("axes") != [1]:
        return False
    before, inner = shape_of(source), shape_of(op.inputs[0])
    if before[:2] != inner[:2]:
        return False
    op.set_input(0, source)
    op.outputs[0].shape = before
    context.discard(first)
    return True
