"""Spells ops in the few forms that later rewrites look for (toolkit rules ``convert_*_to_*``)."""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler.rewriting import Context, known, rewrite, shape_of
from ort_rknpu.graph import Op, Value


def _mapped(value: Value, context: Context, data: np.ndarray | None) -> Value:
    return context.constant(value, shape_of(value), data)


@rewrite("convert_sub_to_add", "Sub")
def sub_to_add(op: Op, context: Context) -> bool:
    """x - c becomes x + (-c)."""
    right = op.input(1)
    if right is None or not right.constant or op.inputs[0] is None or op.inputs[0].constant:
        return False
    op.op_type = "Add"
    op.set_input(1, _mapped(right, context, None if right.const is None else -right.const))
    return True


@rewrite("convert_div_to_mul", "Div")
def div_to_mul(op: Op, context: Context) -> bool:
    """x / c becomes x * (1/c); integers stay."""
    right = op.input(1)
    if right is None or not right.constant or op.inputs[0] is None or op.inputs[0].constant:
        return False
    if (right.dtype or "").startswith(("int", "uint")):
        return False
    op.op_type = "Mul"
    with np.errstate(divide="ignore"):
        data = None if right.const is None else 1.0 / right.const
    op.set_input(1, _mapped(right, context, data))
    return True


@rewrite("convert_neg_to_mul", "Neg")
def neg_to_mul(op: Op, context: Context) -> bool:
    """-x becomes x * -1."""
    op.op_type = "Mul"
    op.set_inputs([op.inputs[0], context.scalar(-1.0, op.outputs[0].dtype)])
    return True


@rewrite("convert_abs_to_leakyrelu", "Abs")
def abs_to_leakyrelu(op: Op, context: Context) -> bool:
    """abs(x) becomes LeakyRelu(alpha=-1)."""
    if not (op.outputs[0].dtype or "float32").startswith("float"):
        return False
    op.op_type = "LeakyRelu"
    op.attributes = {"alpha": -1.0}
    return True


@rewrite("convert_reciprocal_to_div", "Reciprocal")
def reciprocal_to_div(op: Op, context: Context) -> bool:
    """1/x becomes a Div."""
    op.op_type = "Div"
    op.set_inputs([context.scalar(1.0, op.outputs[0].dtype), op.inputs[0]])
    return True


@rewrite("convert_sum_to_add", "Sum")
def sum_to_add(op: Op, context: Context) -> bool:
    """A Sum becomes a chain of Adds."""
    read = [v for v in op.inputs if v is not None]
    if len(read) < 2 or not known(op):
        return False
    total = read[0]
    for value in read[1:]:
        shape = np.broadcast_shapes(shape_of(total), shape_of(value))
        total = context.add("Add", [total, value], [shape], op.origins, base=op.name).outputs[0]
    context.replace(op, total)
    return True


@rewrite("convert_squeeze_to_reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout")
def to_reshape(op: Op, context: Context) -> bool:
    """Squeeze, Unsqueeze, Flatten, Identity and Dropout become Reshapes.

    Toolkit rules ``convert_squeeze_to_reshape``, ``convert_unsqueeze_to_reshape``, ``convert_flatten_to_reshape``,
    ``convert_identity_to_reshape`` and ``convert_dropout_to_reshape``.
    """
    if op.outputs[0].static_shape is None or any(v.uses or context.graph.is_output(v) for v in op.outputs[1:]):
        return False
    op.op_type = "Reshape"
    op.attributes = {}
    op.set_inputs([op.inputs[0]])
    op.outputs = op.outputs[:1]
    return True


@rewrite("drop_reshape_shape", "Reshape")
def drop_shape_input(op: Op, context: Context) -> bool:
    """A Reshape to a known shape no longer reads it."""
    if len(op.inputs) < 2 or op.outputs[0].static_shape is None or op.inputs[1] is None:
        return False
    op.set_inputs([op.inputs[0]])
    op.attributes = {}
    return True


@rewrite("write_transpose_perm", "Transpose")
def default_perm(op: Op, context: Context) -> bool:
    """A Transpose without ``perm`` reverses the dimensions."""
    if op.attr("perm") is not None or op.outputs[0].rank is None:
        return False
    op.attributes = {**op.attributes, "perm": list(range(op.outputs[0].rank))[::-1]}
    return True
