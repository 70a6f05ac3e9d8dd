"""Rewrites of Expand at ranks above 4, and of the repetition of elements that a Reshape behind makes of it.

Models ``convert_expand_to_gather_before_rs`` and ``squeeze_nd_expand``.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("convert_expand_to_gather_before_rs", "Expand")
def repeat_to_gather(op: Op, context: Context) -> bool:
    """At rank 5, one dimension of 1 expanded and then merged into the one before it repeats that one's elements."""
    source = op.inputs[0]
    tail = reader(op, context, "Reshape")
    if source is None or source.rank != 5 or tail is None or not known(op) or not known(tail):
        return False
    before, after = shape_of(source), shape_of(op.outputs[0])
    grown = [axis for axis in range(5) if before[axis] != after[axis]]
    if len(grown) != 1 or grown[0] == 0:
        return False
    axis = grown[0] - 1
    size, count = before[axis], after[axis + 1]
    merged = (*after[:axis], size * count, *after[axis + 2 :])
    if shape_of(tail.outputs[0]) != merged:
        return False
    x = context.reshape(source, (*before[: axis + 1], *before[axis + 2 :]))
    index = Value(context.unique("repeats"), (size * count,), "int64", np.repeat(np.arange(size), count))
    new = context.add("Gather", [x, index], [merged], op.origins, {"axis": axis}, base=op.name)
    context.replace(tail, new.outputs[0])
    return True


@rewrite("squeeze_nd_expand", "Expand")
def merge_dimensions(op: Op, context: Context) -> bool:
    """Above rank 4, neighbouring dimensions that stay as they are become one, where that leaves four."""
    source = op.inputs[0]
    if source is None or source.rank is None or source.rank < 5 or not known(op) or op.inputs[1] is None:
        return False
    before, after = shape_of(source), shape_of(op.outputs[0])
    if len(before) != len(after):
        return False
    groups: list[list[int]] = []
    for axis in range(len(before)):
        stays = before[axis] == after[axis]
        if stays and groups and before[groups[-1][-1]] == after[groups[-1][-1]]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) > 4:
        return False
    fill = (1,) * (4 - len(groups))
    view = (*fill, *(prod(before[axis] for axis in group) for group in groups))
    target = (*fill, *(prod(after[axis] for axis in group) for group in groups))
    x = context.reshape(source, view)
    shape = context.constant(op.inputs[1], (4,), np.array(target))
    new = context.add("Expand", [x, shape], [target], op.origins, base=op.name)
    context.replace(op, context.reshape(new.outputs[0], after))
    return True
