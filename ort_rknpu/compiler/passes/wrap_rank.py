"""Wraps ops of another rank than 4 between Reshapes.

Models the toolkit rules ``unsqueeze_to_4d_<op>``, ``squeeze_to_4d_<op>``, ``squeeze_1_in_nd_transpose``,
``squeeze_nd_transpose``, ``merge_dims_and_convert_ND_to_4D_split`` and ``input_align_4D_<op>``. Rank 1 [a] becomes
[1,a,1,1], rank 2 [a,b] becomes [1,a,1,b], rank 3 [a,b,c] becomes [a,b,1,c], an op on the first axis of rank 3
[1,a,b,c]; rank 5 loses a dimension of 1. The Reshapes come from no node of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ort_rknpu.compiler.rewriting import Context, known, numbers, rewrite, shape_of
from ort_rknpu.graph import Op, Value

ELEMENTWISE = (
    "Add", "Sub", "Mul", "Div", "Pow", "Where", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
    "Equal", "Relu", "LeakyRelu", "Elu", "Clip", "Sigmoid", "Tanh", "Softplus", "Exp", "Log", "Sqrt", "Erf", "Sin",
    "Cos", "Atan", "Floor", "Cast", "exGelu", "exSwish", "exMish", "Expand",
)  # fmt: skip
"""Ops whose operands broadcast against the output and that have no axis."""

DEEP = ("Max", "Min")
"""Element-wise ops that are wrapped from rank 5 on only."""

SHALLOW = ("Sqrt",)
"""Element-wise ops that are wrapped up to rank 3 only."""

AXIS = ("Concat", "Split", "exSoftmax13", "LogSoftmax", "ArgMax", "ArgMin", "TopK", "GatherElements", "Gather")
"""Ops with one ``axis`` attribute; every run-time operand has the rank of the output."""

REDUCE = ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ReduceMean")

SPATIAL = (
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization",
    "Resize",
)  # fmt: skip
"""Ops on [n,c,l] that also exist on [n,c,h,w]."""


@dataclass(frozen=True)
class Wrapping:
    """How a shape of another rank is seen at rank 4: the old axis at every place, None for an inserted 1."""

    axes: tuple[int | None, ...]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The rank-4 view of a shape."""
        return tuple(1 if axis is None else shape[axis] for axis in self.axes)

    def place(self, axis: int) -> int:
        """Where an old axis stands in the view."""
        return self.axes.index(axis)


def wrapping_of(rank: int, shapes: Sequence[Sequence[int]], axis: int | None = None) -> Wrapping | None:
    """The view the compiler chooses for operands of ``rank``, or None where it has none."""
    if rank == 1:
        return Wrapping((None, 0, None, None))
    if rank == 2:
        return Wrapping((None, 0, None, 1))
    if rank == 3:
        return Wrapping((None, 0, 1, 2)) if axis == 0 else Wrapping((0, 1, None, 2))
    if rank < 5:
        return None
    keep: list[int] = list(range(rank))
    for candidate in range(rank):
        if len(keep) == 4:
            break
        if candidate != axis and all(shape[candidate] == 1 for shape in shapes):
            keep.remove(candidate)
    return Wrapping(tuple(keep)) if len(keep) == 4 else None


def align(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    """A broadcast operand's shape with leading 1s up to ``rank``."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def _wrap(op: Op, wrapping: Wrapping, operands: Sequence[int], context: Context) -> None:
    """Reshapes the operands named and all outputs; the op works on rank 4 from then on."""
    rank = op.outputs[0].rank or 0
    for index in operands:
        value = op.inputs[index]
        if value is not None:
            aligned = align(shape_of(value), max(rank, len(shape_of(value))))
            op.set_input(index, context.reshape(value, wrapping.shape(aligned)))
    rewrap_outputs(op, wrapping.shape, context)


def rewrap_outputs(op: Op, view: Callable[[Sequence[int]], Sequence[int]], context: Context) -> None:
    """Lets the op write every output in another shape; Reshapes lead back to the shape its readers know."""
    for position, old in enumerate(op.outputs):
        new = Value(context.unique(f"{old.name}_4d"), view(shape_of(old)), old.dtype)
        new.producer = op
        old.producer = None
        op.outputs[position] = new
        if old.uses or context.graph.is_output(old):
            context.graph.add(Op("Reshape", [new], [old], name=f"{old.name}-rs"))


@rewrite("unsqueeze_to_4d_elementwise", *ELEMENTWISE, *DEEP)
def wrap_elementwise(op: Op, context: Context) -> bool:
    """Element-wise ops of rank 1, 2, 3 or 5."""
    rank = op.outputs[0].rank
    if rank is None or rank == 4 or rank == 0 or not known(op):
        return False
    if (op.op_type in DEEP and rank < 5) or (op.op_type in SHALLOW and rank > 3):
        return False
    operands = [0] if op.op_type in ("Clip", "Cast", "Expand") else list(range(len(op.inputs)))
    if op.op_type == "Pow" and len(shape_of(op.input(1))) <= 1:
        operands = [0]
    shapes = [align(shape_of(op.inputs[i]), rank) for i in operands] + [shape_of(op.outputs[0])]
    wrapping = wrapping_of(rank, shapes)
    if wrapping is None:
        return False
    if op.op_type == "Expand" and op.inputs[1] is not None:
        target = wrapping.shape(shape_of(op.outputs[0]))
        op.set_input(1, context.constant(op.inputs[1], (4,), np.array(target)))
    _wrap(op, wrapping, operands, context)
    return True


@rewrite("unsqueeze_to_4d_axis", *AXIS)
def wrap_axis(op: Op, context: Context) -> bool:
    """Ops along one axis of rank 1, 2, 3 or 5."""
    rank = op.inputs[0].rank if op.inputs[0] is not None else None
    if rank is None or rank == 4 or rank == 0 or not known(op) or op.outputs[0].rank != rank:
        return False
    default = {"exSoftmax13": -1, "LogSoftmax": -1, "TopK": -1}.get(op.op_type, 0)
    axis = op.attr("axis", default) % rank
    operands = [i for i, v in enumerate(op.inputs) if v is not None and v.rank == rank]
    if op.op_type in ("Split", "TopK", "Gather"):
        operands = [0]
    if op.op_type == "Gather" and (op.inputs[1] is None or op.inputs[1].rank != 1):
        return False
    first_axis = axis if op.op_type == "Concat" or rank > 4 else None
    wrapping = wrapping_of(rank, [shape_of(op.inputs[i]) for i in operands], first_axis)
    if wrapping is None:
        return False
    op.attributes = {**op.attributes, "axis": wrapping.place(axis)}
    _wrap(op, wrapping, operands, context)
    return True


@rewrite("unsqueeze_to_4d_slice", "Slice")
def wrap_slice(op: Op, context: Context) -> bool:
    """Slices of rank 1, 2, 3 or 5."""
    rank = op.outputs[0].rank
    if rank is None or rank == 4 or rank == 0 or not known(op):
        return False
    starts = numbers(op.input(1))
    axes = numbers(op.input(3)) or (list(range(len(starts))) if starts is not None else None)
    if axes is None:
        return False
    axes = [axis % rank for axis in axes]
    keep_out = axes[0] if len(axes) == 1 else None
    wrapping = wrapping_of(rank, [shape_of(op.inputs[0]), shape_of(op.outputs[0])], keep_out if rank > 4 else None)
    if wrapping is None or any(axis not in wrapping.axes for axis in axes):
        return False
    if len(op.inputs) > 3 and op.inputs[3] is not None:
        moved = np.array([wrapping.place(axis) for axis in axes])
        op.set_input(3, context.constant(op.inputs[3], (len(axes),), moved))
    _wrap(op, wrapping, [0], context)
    return True


@rewrite("unsqueeze_to_4d_pad", "Pad")
def wrap_pad(op: Op, context: Context) -> bool:
    """Pads of rank 1, 2, 3 or 5; at rank 3 the larger of the leading dimensions becomes the channel."""
    rank = op.outputs[0].rank
    pads = numbers(op.input(1)) or op.attr("pads")
    if rank is None or rank == 4 or rank == 0 or not known(op) or pads is None or op.input(3) is not None:
        return False
    shape = shape_of(op.inputs[0])
    wrapping = wrapping_of(rank, [shape, shape_of(op.outputs[0])])
    if rank == 3 and shape[:2] == shape_of(op.outputs[0])[:2] == (1, 1):
        wrapping = Wrapping((0, 2, 1, None))
    elif rank == 3 and shape[0] > shape[1]:
        wrapping = Wrapping((None, 0, 1, 2))
    if wrapping is None:
        return False
    both = [0] * 8
    for axis in range(rank):
        if axis not in wrapping.axes:
            continue
        both[wrapping.place(axis)] = pads[axis]
        both[wrapping.place(axis) + 4] = pads[axis + rank]
    if op.input(1) is not None:
        op.set_input(1, context.constant(op.inputs[1], (8,), np.array(both)))  # type: ignore[arg-type]
    else:
        op.attributes = {**op.attributes, "pads": both}
    _wrap(op, wrapping, [0], context)
    return True


@rewrite("unsqueeze_to_4d_reduce", *REDUCE)
def wrap_reduce(op: Op, context: Context) -> bool:
    """Reductions of rank 1, 2, 3 or 5; a sum need not keep its dimensions."""
    rank = op.inputs[0].rank if op.inputs[0] is not None else None
    if rank is None or rank == 4 or rank == 0 or not known(op):
        return False
    axes = reduced_axes(op)
    if not axes or not (op.attr("keepdims", 1) or op.op_type == "ReduceSum"):
        return False
    shape = shape_of(op.inputs[0])
    wrapping = wrapping_of(rank, [shape], axes[0] if axes == [0] or rank > 4 else None)
    if wrapping is None or any(axis not in wrapping.axes for axis in axes):
        return False
    places = [wrapping.place(axis) for axis in axes]
    if len(places) > 1:
        places = [p for p in range(4) if p in places or (wrapping.axes[p] is None and places[0] < p < places[-1])]
    set_reduced_axes(op, places, context)
    view = wrapping.shape([1 if axis in axes else size for axis, size in enumerate(shape)])
    op.attributes = {**op.attributes, "keepdims": 1}
    assert op.inputs[0] is not None
    op.set_input(0, context.reshape(op.inputs[0], wrapping.shape(shape)))
    rewrap_outputs(op, lambda _: view, context)
    return True


def reduced_axes(op: Op) -> list[int] | None:
    """The axes a reduction runs over, non-negative and sorted, or None where they are not known."""
    rank = op.inputs[0].rank if op.inputs[0] is not None else None
    if rank is None:
        return None
    given = op.attr("axes")
    if given is None and op.input(1) is not None:
        given = numbers(op.input(1))
        if given is None:
            return None
    if not given:
        return [] if op.attr("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({axis % rank for axis in given})


def set_reduced_axes(op: Op, axes: list[int], context: Context) -> None:
    """Writes the axes of a reduction as an attribute, the one form the later stages read."""
    op.attributes = {**op.attributes, "axes": axes}
    op.set_inputs([op.inputs[0]])


@rewrite("unsqueeze_to_4d_spatial", *SPATIAL)
def wrap_spatial(op: Op, context: Context) -> bool:
    """Convolutions, pools, BatchNormalization and Resize of rank 3 (and BatchNormalization of rank 2)."""
    source = op.inputs[0]
    if source is None or source.rank not in (2, 3) or not known(op):
        return False
    if source.rank == 2:
        if op.op_type != "BatchNormalization":
            return False
        view = (*shape_of(source), 1, 1)
        op.set_input(0, context.reshape(source, view))
        rewrap_outputs(op, lambda shape: (*shape, 1, 1), context)
        return True
    changes = {}
    for name, neutral in (("kernel_shape", 1), ("strides", 1), ("dilations", 1)):
        if op.attr(name) is not None:
            changes[name] = [neutral, *op.attr(name)]
    if op.attr("pads") is not None:
        begin, end = op.attr("pads")
        changes["pads"] = [0, begin, 0, end]
    if op.attr("output_padding") is not None:
        changes["output_padding"] = [0, *op.attr("output_padding")]
    op.attributes = {**op.attributes, **changes}
    if op.op_type in ("Conv", "ConvTranspose") and op.inputs[1] is not None:
        n, c, k = shape_of(op.inputs[1])
        op.set_input(1, context.reshape(op.inputs[1], (n, c, 1, k)))
    if op.op_type == "Resize":
        for index, fill in ((1, 0.0), (2, 1.0), (3, 1.0)):
            value = op.input(index)
            if value is not None and value.const is not None and value.const.size:
                grown = np.insert(value.const, 2 if index != 1 else [2, 5], fill)
                if index == 3:
                    grown[2] = 1
                op.set_input(index, context.constant(value, grown.shape, grown))
    _wrap(op, Wrapping((0, 1, None, 2)), [0], context)
    return True


@rewrite("unsqueeze_to_4d_transpose", "Transpose")
def wrap_transpose(op: Op, context: Context) -> bool:
    """Transposes of rank 2 and 3."""
    rank = op.outputs[0].rank
    if rank not in (2, 3) or not known(op) or op.inputs[0] is None:
        return False
    wrapping = wrapping_of(rank, [])
    assert wrapping is not None
    perm = [axis if old is None else -1 for axis, old in enumerate(wrapping.axes)]
    for place, old in enumerate(wrapping.axes):
        if old is not None:
            perm[place] = wrapping.place(op.attr("perm")[old])
    op.attributes = {**op.attributes, "perm": perm}
    _wrap(op, wrapping, [0], context)
    return True


@rewrite("squeeze_1_in_nd_transpose", "Transpose")
def squeeze_transpose(op: Op, context: Context) -> bool:
    """Transposes of rank 5 and more lose dimensions of 1, then neighbours that move together become one."""
    rank = op.outputs[0].rank
    if rank is None or rank < 5 or not known(op) or op.inputs[0] is None:
        return False
    shape, perm = list(shape_of(op.inputs[0])), list(op.attr("perm"))
    while len(shape) > 4 and 1 in shape:
        gone = shape.index(1)
        shape.pop(gone)
        perm = [axis - (axis > gone) for axis in perm if axis != gone]
    while len(shape) > 4:
        pair = next((p for p in reversed(range(len(perm) - 1)) if perm[p + 1] == perm[p] + 1), None)
        if pair is None:
            break
        first = perm[pair]
        shape[first] *= shape.pop(first + 1)
        perm.pop(pair + 1)
        perm = [axis - (axis > first) for axis in perm]
    if len(shape) == rank:
        return False
    op.set_input(0, context.reshape(op.inputs[0], shape))
    op.attributes = {**op.attributes, "perm": perm}
    rewrap_outputs(op, lambda _: tuple(shape[axis] for axis in perm), context)
    return True


@rewrite("input_align_4D", "Add", "Sub", "Mul", "Div", "Where", "Greater")
def align_operands(op: Op, context: Context) -> bool:
    """Operands of a rank-4 op get rank 4 themselves; those of Greater only where they are constant."""
    if op.outputs[0].rank != 4 or not known(op):
        return False
    changed = False
    for index, value in enumerate(op.inputs):
        if value is not None and value.rank != 4 and (value.constant or op.op_type != "Greater"):
            op.set_input(index, context.reshape(value, align(shape_of(value), 4)))
            changed = True
    return changed
