"""A constant scale and a constant bias per channel, one behind the other, are one BatchNormalization."""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, known, reader, rewrite, shape_of, split_constant, union
from ort_rknpu.graph import Op, Value


@rewrite("replace_mul_add_by_bn", "Mul")
def mul_add_to_batch_norm(op: Op, context: Context) -> bool:
    """Mul, then Add, by constants of one number or one per channel, on a tensor of rank 4."""
    following = reader(op, context, "Add")
    scale, bias = split_constant(op), None if following is None else split_constant(following)
    if following is None or scale is None or bias is None or not known(op) or not known(following):
        return False
    shape = shape_of(op.outputs[0])
    if len(shape) != 4 or any(shape_of(value) != shape for value in (scale[0], following.outputs[0])):
        return False
    if not all(_per_channel(constant, shape[1]) for constant in (scale[1], bias[1])):
        return False
    parameters = [context.constant(value, (shape[1],)) for value in (scale[1], bias[1], bias[1], scale[1])]
    norm = context.add("BatchNormalization", [scale[0], *parameters], [shape], union(op, following))
    context.replace(following, norm.outputs[0])
    return True


def _per_channel(constant: Value, channels: int) -> bool:
    shape = shape_of(constant)
    return len(shape) <= 4 and (1,) * (4 - len(shape)) + shape in ((1, 1, 1, 1), (1, channels, 1, 1))
