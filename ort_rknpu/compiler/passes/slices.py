"""Rewrites of Gather, Slice, Split and Concat.

Models ``convert_gather_to_slice_reshape``, ``convert_gather_to_reshape``, ``gather_to_conv``,
``replace_parallel_slice_by_split``, ``fuse_two_slice``, ``fuse_focus_slice``, ``fuse_focus_slice2`` and
``fuse_channel_shuffle_split_concat_to_gather``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ort_rknpu.compiler.passes.wrap_rank import wrapping_of
from ort_rknpu.compiler.rewriting import Context, known, numbers, producer, rewrite, shape_of, split_constant, union
from ort_rknpu.graph import Op, Value


def slice_of(
    value: Value, axis: int, start: int, end: int, origins: frozenset[int], context: Context, base: str
) -> Value:
    """A new Slice along one axis."""
    shape = list(shape_of(value))
    shape[axis] = end - start
    parameters = [
        Value(context.unique("starts"), (1,), "int64", np.array([start])),
        Value(context.unique("ends"), (1,), "int64", np.array([end])),
        Value(context.unique("axes"), (1,), "int64", np.array([axis])),
    ]
    return context.add("Slice", [value, *parameters], [shape], origins, base=base).outputs[0]


@rewrite("convert_gather_to_slice_reshape", "Gather")
def gather_to_slice(op: Op, context: Context) -> bool:
    """A Gather of one index, or of consecutive ones, becomes a Slice and a Reshape."""
    source, index = op.inputs[0], op.inputs[1]
    wanted = numbers(index)
    if source is None or index is None or source.constant or wanted is None or not known(op) or not wanted:
        return False
    shape = shape_of(source)
    axis = op.attr("axis", 0) % len(shape)
    wanted = [i % shape[axis] for i in wanted]
    if wanted != list(range(wanted[0], wanted[0] + len(wanted))):
        return False
    result = source
    if len(wanted) < shape[axis]:
        # the Slice is wrapped at once: the Reshape behind it is then the Gather's own
        part = tuple(len(wanted) if a == axis else size for a, size in enumerate(shape))
        wrapping = None if len(shape) == 4 else wrapping_of(len(shape), [shape, part], axis if len(shape) > 4 else None)
        if wrapping is not None:
            result, axis = context.reshape(source, wrapping.shape(shape)), wrapping.place(axis)
        result = slice_of(result, axis, wanted[0], wanted[-1] + 1, op.origins, context, op.name)
    result = context.reshape(result, shape_of(op.outputs[0]), op.origins)
    if result is source:
        return context.bypass(op)
    context.replace(op, result)
    return True


@rewrite("gather_to_conv", "Gather")
def gather_to_conv(op: Op, context: Context) -> bool:
    """A Gather of constant channels of a rank-4 value becomes a 1x1 Conv."""
    source, index = op.inputs[0], op.inputs[1]
    if source is None or index is None or not known(op) or numbers(index) is None or index.rank != 1:
        return False
    if source.rank != 4 or op.attr("axis", 0) % 4 != 1 or not (source.dtype or "float32").startswith("float"):
        return False
    kernel = context.constant(index, (len(numbers(index) or ()), shape_of(source)[1], 1, 1))
    kernel.dtype = source.dtype
    new = context.add(
        "Conv", [source, kernel], [shape_of(op.outputs[0])], op.origins, {"kernel_shape": [1, 1]}, base=op.name
    )
    context.replace(op, new.outputs[0])
    return True


def slice_ranges(op: Op) -> dict[int, tuple[int, int, int]] | None:
    """axis -> (start, end, step) of a Slice with constant parameters, clipped to the shape."""
    shape = shape_of(op.inputs[0])
    starts, ends = numbers(op.input(1)), numbers(op.input(2))
    if op.input(1) is None:
        starts, ends = op.attr("starts"), op.attr("ends")
    if starts is None or ends is None:
        return None
    axes = numbers(op.input(3)) if op.input(3) is not None else op.attr("axes")
    steps = numbers(op.input(4)) if op.input(4) is not None else None
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    result = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= len(shape)
        result[axis] = (*slice(start, end, step).indices(shape[axis])[:2], step)
    return result


@rewrite("replace_parallel_slice_by_split", "Slice")
def parallel_slices_to_split(op: Op, context: Context) -> bool:
    """Slices of a value along one axis that do not overlap become a Split, with outputs nobody reads for the gaps."""
    value = op.inputs[0]
    if value is None or len(value.uses) < 2 or op is not next(iter(value.uses))[0]:
        return False
    slices = [o for o in value.consumers() if o.op_type == "Slice"]
    if len(slices) < 2:
        return False
    found: dict[int, list[tuple[int, int, Op]]] = {}
    for piece in slices:
        ranges = slice_ranges(piece) if known(piece) else None
        shape = shape_of(value)
        cuts = {a: r for a, r in (ranges or {}).items() if r != (0, shape[a], 1)}
        if len(cuts) != 1:
            continue
        ((axis, (start, end, step)),) = cuts.items()
        if step == 1:
            found.setdefault(axis, []).append((start, end, piece))
    for axis, pieces in found.items():
        pieces.sort(key=lambda piece: piece[:2])
        if len(pieces) < 2 or any(a[1] > b[0] for a, b in pairwise(pieces)):
            continue
        sections: list[tuple[int, Op | None]] = []
        position = 0
        for start, end, piece in pieces:
            if start > position:
                sections.append((start - position, None))
            sections.append((end - start, piece))
            position = end
        if position < shape_of(value)[axis]:
            sections.append((shape_of(value)[axis] - position, None))
        origins = union(*(piece for _, _, piece in pieces))
        shapes = [(*shape_of(value)[:axis], size, *shape_of(value)[axis + 1 :]) for size, _ in sections]
        attributes = {"axis": axis, "split": [size for size, _ in sections]}
        split = context.add("Split", [value], shapes, origins, attributes, base=pieces[-1][2].name)
        for output, (_, taken) in zip(split.outputs, sections, strict=True):
            if taken is not None:
                context.replace(taken, output)
        return True
    return False


@rewrite("fuse_two_slice", "Slice")
def two_slices(op: Op, context: Context) -> bool:
    """Two Slices in a row along different axes become one."""
    first = producer(op.inputs[0], "Slice")
    if first is None or len(first.outputs[0].uses) > 1 or not known(op) or not known(first):
        return False
    ours, theirs = slice_ranges(op), slice_ranges(first)
    if ours is None or theirs is None or set(ours) & set(theirs):
        return False
    ranges = sorted({**theirs, **ours}.items())
    columns = zip(*((start, end, axis, step) for axis, (start, end, step) in ranges), strict=True)
    parameters = [Value(context.unique("range"), (len(ranges),), "int64", np.array(column)) for column in columns]
    op.set_inputs([first.inputs[0], *parameters])
    op.origins |= first.origins
    context.discard(first)
    return True


@rewrite("fuse_focus_slice", "Concat")
def focus(op: Op, context: Context) -> bool:
    """The four step-2 Slices of YOLO's focus layer, joined on channels, become a Conv of kernel 2 and stride 2.

    Channels may stand last, as in the patch merging of Swin: then between Transposes.
    """
    channel = op.attr("axis", 0) % 4
    if channel not in (1, 3) or len(op.inputs) != 4 or not known(op) or op.outputs[0].rank != 4:
        return False
    height, width = (2, 3) if channel == 1 else (1, 2)
    parts: list[Op] = []
    sources: set[Value] = set()
    corners = set()
    for value in op.inputs:
        offsets = {height: (0, 1), width: (0, 1)}
        current = value
        while True:
            piece = producer(current, "Slice")
            ranges = slice_ranges(piece) if piece is not None and known(piece) else None
            if piece is None or ranges is None:
                break
            parts.append(piece)
            for axis, (start, end, step) in ranges.items():
                if axis in offsets and step == 2:
                    offsets[axis] = (start, 2)
                elif (start, end, step) != (0, shape_of(piece.inputs[0])[axis], 1):
                    return False
            current = piece.inputs[0]
        if current is None or any(step != 2 for _, step in offsets.values()):
            return False
        sources.add(current)
        corners.add((offsets[height][0], offsets[width][0]))
    if len(sources) != 1 or corners != {(0, 0), (0, 1), (1, 0), (1, 1)}:
        return False
    source = sources.pop()
    origins = union(op, *parts)
    if channel == 3:
        source = context.transpose(source, (0, 3, 1, 2), origins)
    n, h, w, c = (shape_of(op.outputs[0])[axis] for axis in (0, height, width, channel))
    kernel = Value(context.unique("focus"), (c, c // 4, 2, 2), source.dtype, constant=True)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    result = context.add("Conv", [source, kernel], [(n, c, h, w)], origins, attributes, base=op.name).outputs[0]
    context.replace(op, result if channel == 1 else context.transpose(result, (0, 2, 3, 1), origins))
    return True


@rewrite("fuse_channel_shuffle_split_concat_to_gather", "Concat")
def split_concat_to_gather(op: Op, context: Context) -> bool:
    """A Concat of the outputs of one Split along the same axis, in another order, becomes a Gather."""
    steps = [_scaled_piece(value) for value in op.inputs]
    split = steps[0][0].producer if steps[0] is not None else None
    if split is None or split.op_type != "Split" or not known(op) or len(op.inputs) != len(split.outputs):
        return False
    pieces = [step[0] for step in steps if step is not None]
    if set(pieces) != set(split.outputs) or any(len(v.uses) != 1 for v in split.outputs):
        return False
    factors = [step[1] for step in steps if step is not None and step[1] is not None]
    axis = op.attr("axis", 0) % len(shape_of(op.outputs[0]))
    if split.attr("axis", 0) % len(shape_of(op.outputs[0])) != axis:
        return False
    order: list[int] = []
    starts = np.cumsum([0, *(shape_of(v)[axis] for v in split.outputs)])
    for value in pieces:
        position = next(i for i, v in enumerate(split.outputs) if v is value)
        order.extend(range(int(starts[position]), int(starts[position + 1])))
    index = Value(context.unique("order"), (len(order),), "int64", np.array(order))
    source, origins = split.inputs[0], union(op, split, *factors)
    assert source is not None
    if factors:
        signs = Value(
            context.unique("signs"), (shape_of(source)[axis],) + (1,) * (3 - axis % 4), source.dtype, constant=True
        )
        source = context.add("Mul", [source, signs], [shape_of(source)], origins, base=op.name).outputs[0]
    new = context.add("Gather", [source, index], [shape_of(op.outputs[0])], origins, {"axis": axis}, base=op.name)
    context.replace(op, new.outputs[0])
    return True


def _scaled_piece(value: Value | None) -> tuple[Value, Op | None] | None:
    """(output of a Split, the Mul by one number or Neg between it and ``value`` or None), or None."""
    if value is None:
        return None
    step = producer(value, "Mul", "Neg")
    if step is None or len(value.uses) != 1:
        return value, None
    pair = split_constant(step) if step.op_type == "Mul" else (step.inputs[0], None)
    if (
        pair is None
        or pair[0] is None
        or (pair[1] is not None and pair[1].const is not None and pair[1].const.size != 1)
    ):
        return None
    return pair[0], step
