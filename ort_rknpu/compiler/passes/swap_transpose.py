"""Moves Transposes past element-wise ops, norms and softmax so that they meet others and cancel.

Models ``swap_transpose_<op>`` (a Transpose moves behind the op) and ``swap_<op>_transpose`` (in front of it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.passes.matmul import takes_in
from ort_rknpu.compiler.passes.wrap_rank import align
from ort_rknpu.compiler.rewriting import Context, known, numbers, producer, reader, rewrite, shape_of
from ort_rknpu.graph import Op, Value

UNARY = (
    "Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "Softplus", "Clip", "Exp", "Log", "Sqrt", "Erf", "Cast", "exGelu",
    "exSwish", "exMish",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div")
_ALONG_AXIS = ("exSoftmax13", "LogSoftmax", "Slice", "Concat", "Gather", "exNorm", "Pad")
MAX_CHAIN = 8
"""How far above an op a Transpose is looked for."""


def permuted_constant(value: Value, perm: Sequence[int], context: Context) -> Value | None:
    """A constant operand as it must be when the other operand's Transpose ``perm`` is undone."""
    shape = shape_of(value)
    if all(size == 1 for size in shape):
        return value
    if len(shape) > len(perm):
        return None
    aligned = context.reshape(value, align(shape, len(perm)))
    return context.transpose(aligned, layout.invert(perm))


@rewrite("swap_transpose_op", "Transpose")
def down(op: Op, context: Context) -> bool:
    """Transpose, then op: the op first, where the other operands are constants or equally transposed."""
    following = reader(op, context, *UNARY, *BINARY, *_ALONG_AXIS)
    if following is None or not known(following) or not known(op):
        return False
    if merges_upward(op):
        return False
    return move_down(op, following, context)


def move_down(op: Op, following: Op, context: Context) -> bool:
    """Swaps a Transpose with the op that reads it."""
    perm = list(op.attr("perm"))
    source = op.inputs[0]
    assert source is not None
    if len(following.outputs) != 1 or following.outputs[0].rank != len(perm):
        return False
    new_inputs: list[Value | None] = list(following.inputs)
    absorbed = [op]
    data = _data_inputs(following)
    for index in data:
        value = following.inputs[index]
        if value is None:
            continue
        other = producer(value, "Transpose")
        if value is op.outputs[0]:
            new_inputs[index] = source
        elif value.constant:
            moved = permuted_constant(value, perm, context)
            if moved is None:
                return False
            new_inputs[index] = moved
        elif other is not None and list(other.attr("perm")) == perm and len(value.uses) == 1:
            new_inputs[index] = other.inputs[0]
            absorbed.append(other)
        else:
            return False
    if not _move_axis(following, perm, new_inputs, context):
        return False
    following.set_inputs(new_inputs)
    out = following.outputs[0]
    inner = Value(context.unique(f"{out.name}_sw"), layout.permute(shape_of(out), layout.invert(perm)), out.dtype)
    following.outputs[0] = inner
    inner.producer = following
    for other in absorbed[1:]:
        context.discard(other)
    op.set_inputs([inner])
    old = op.outputs[0]
    old.producer = None
    op.outputs = [out]
    out.producer = op
    return True


def _data_inputs(op: Op) -> list[int]:
    if op.op_type in (*BINARY, "Concat"):
        return list(range(len(op.inputs)))
    return [0]


def _move_axis(op: Op, perm: Sequence[int], inputs: list[Value | None], context: Context) -> bool:
    """Rewrites the axis an op works along for its un-transposed operand."""
    rank = len(perm)
    if op.op_type in ("exSoftmax13", "LogSoftmax", "Softmax", "Concat", "Gather"):
        axis = perm[op.attr("axis", 0 if op.op_type in ("Concat", "Gather") else -1) % rank]
        if op.op_type == "Gather" and (op.inputs[1] is None or op.inputs[1].rank != 1):
            return False
        if op.op_type in ("exSoftmax13", "LogSoftmax", "Softmax") and (axis == 0 or (rank == 4 and axis == 2)):
            return False
        op.attributes = {**op.attributes, "axis": axis}
    if op.op_type == "Slice":
        axes = numbers(op.input(3))
        if axes is None or op.inputs[3] is None:
            return False
        inputs[3] = context.constant(op.inputs[3], (len(axes),), np.array([perm[a % rank] for a in axes]))
    if op.op_type == "Pad":
        pads = numbers(op.input(1))
        if pads is None or op.inputs[1] is None or op.input(3) is not None:
            return False
        undo = layout.invert(perm)
        moved = [pads[side * rank + axis] for side in (0, 1) for axis in undo]
        inputs[1] = context.constant(op.inputs[1], (2 * rank,), np.array(moved))
    return op.op_type != "exNorm" or (op.attr("axes") == [1] and rank == 4 and perm[1] == 1)


@rewrite("swap_op_transpose", *UNARY, *BINARY, "exSoftmax13", "exNorm")
def up(op: Op, context: Context) -> bool:
    """Op, then Transpose: the Transpose first, where it meets another one above the op."""
    turn = reader(op, context, "Transpose")
    if turn is None or not known(op) or not known(turn):
        return False
    perm = list(turn.attr("perm"))
    run_time = [i for i in _data_inputs(op) if not _is_constant(op.inputs[i])]
    if len(run_time) != 1 or not _meets(op, perm):
        return False
    return move_up(op, turn, perm, run_time[0], context)


def _is_constant(value: Value | None) -> bool:
    return value is None or value.constant


def merges_upward(op: Op) -> bool:
    """Whether a Transpose has something above to merge with: no reason to move down."""
    return _meets(op, list(op.attr("perm")))


def _meets(op: Op, perm: list[int]) -> bool:
    """Whether past ops that a Transpose passes another one stands, or an exMatMul that can take it in."""
    for _ in range(MAX_CHAIN):
        run_time = [v for i in _data_inputs(op) if (v := op.inputs[i]) is not None and not v.constant]
        if len(run_time) != 1 or run_time[0].producer is None or len(run_time[0].uses) > 1:
            return False
        above = run_time[0].producer
        if above.op_type == "exMatMul":
            return takes_in(above, perm)
        if above.op_type == "Transpose":
            return True
        if above.op_type not in (*UNARY, *BINARY, "exSoftmax13", "exNorm"):
            return False
        if above.op_type == "exNorm" and perm[1:2] != [1]:
            return False
        if above.op_type == "exSoftmax13" and perm.index(above.attr("axis")) not in (1, 3):
            return False
        op = above
    return False


def move_up(op: Op, turn: Op, perm: list[int], source_index: int, context: Context) -> bool:
    """Swaps an op with the Transpose that reads it."""
    source = op.inputs[source_index]
    assert source is not None
    if source.rank != len(perm) or source.shape != op.outputs[0].shape:
        return False
    new_inputs: list[Value | None] = list(op.inputs)
    for index in _data_inputs(op):
        value = op.inputs[index]
        if index == source_index or value is None:
            continue
        if not value.constant:
            return False
        moved = permuted_constant(value, layout.invert(perm), context)
        if moved is None:
            return False
        new_inputs[index] = moved
    if op.op_type == "exSoftmax13":
        axis = perm.index(op.attr("axis"))
        if axis == 0 or (len(perm) == 4 and axis == 2):
            return False
        op.attributes = {**op.attributes, "axis": axis}
    if op.op_type == "exNorm" and (op.attr("axes") != [1] or perm[1] != 1):
        return False
    middle, out = op.outputs[0], turn.outputs[0]
    middle.producer = None
    turned = Value(context.unique(f"{middle.name}_sw"), shape_of(out), source.dtype)
    turn.set_inputs([source])
    turn.outputs = [turned]
    turned.producer = turn
    new_inputs[source_index] = turned
    op.set_inputs(new_inputs)
    op.outputs = [out]
    out.producer = op
    return True
