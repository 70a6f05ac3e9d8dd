"""Recognises activations spelled out in several nodes.

Models ``replace_exswish``, ``replace_exswish2``, ``replace_torch_gelu``, ``replace_torch_gelu2``,
``replace_torch_tanh_gelu``, ``replace_softplus_tanh_mul_by_exmish``, ``replace_exp_add_log_by_softplus``,
``fuse_hardsigmoid_mul_to_hardswish`` and ``replace_torch_hardswish2``.
"""

from __future__ import annotations

from math import pi, prod, sqrt

from ort_rknpu.compiler.rewriting import (
    Context,
    close,
    number,
    producer,
    reader,
    rewrite,
    split_constant,
    union,
)
from ort_rknpu.graph import Op, Value


def _become(op_type: str, last: Op, source: Value, parts: list[Op], context: Context, **attributes: float) -> bool:
    """One op of ``op_type`` on ``source`` in the place of ``last``, from all ``parts``."""
    new = context.add(op_type, [source], [last.outputs[0].shape or ()], union(*parts), attributes, base=last.name)
    new.outputs[0].dtype = last.outputs[0].dtype
    context.replace(last, new.outputs[0])
    return True


def _times_constant(op: Op | None) -> tuple[Value, float] | None:
    """(x, c) of an op that computes x * c (x / c counts as x * 1/c)."""
    if op is None or op.op_type not in ("Mul", "Div"):
        return None
    pair = split_constant(op)
    factor = number(pair[1]) if pair is not None else None
    if pair is None or factor is None:
        return None
    if op.op_type == "Div":
        return (pair[0], 1.0 / factor) if op.inputs[1] is pair[1] and factor else None
    return pair[0], factor


def _plus_constant(op: Op | None, expected: float) -> Value | None:
    """x of an Add that computes x + expected."""
    if op is None or op.op_type != "Add":
        return None
    pair = split_constant(op)
    return pair[0] if pair is not None and close(number(pair[1]), expected) else None


def _other(op: Op, value: Value) -> Value | None:
    """The operand of a two-operand op that is not ``value``."""
    if len(op.inputs) != 2:
        return None
    return op.inputs[1] if op.inputs[0] is value else op.inputs[0]


@rewrite("replace_exswish", "Sigmoid")
def swish(op: Op, context: Context) -> bool:
    """x * sigmoid(x), or x * sigmoid(beta * x) where beta has rank 0."""
    last = reader(op, context, "Mul")
    gate = op.inputs[0]
    if last is None or gate is None:
        return False
    source = _other(last, op.outputs[0])
    if source is gate:
        return _become("exSwish", last, gate, [op, last], context)
    scale = producer(gate, "Mul")
    scaled = _times_constant(scale)
    if scale is None or scaled is None or scaled[0] is not source or len(scale.outputs[0].uses) > 1:
        return False
    pair = split_constant(scale)
    if pair is None or pair[1].rank != 0:
        return False
    return _become("exSwish", last, scaled[0], [scale, op, last], context, beta=scaled[1])


@rewrite("replace_torch_gelu", "Erf")
def erf_gelu(op: Op, context: Context) -> bool:
    """(x * (erf(x / sqrt 2) + 1)) * 0.5 with the constants second; others stay (measured 2.3.2: probes gelu)."""
    inner = producer(op.inputs[0], "Div")
    scaled = _times_constant(inner)
    add = reader(op, context, "Add")
    if inner is None or scaled is None or not close(scaled[1], 1 / sqrt(2)) or add is None:
        return False
    if _plus_constant(add, 1.0) is not op.outputs[0] or add.inputs[0] is not op.outputs[0]:
        return False
    product = reader(add, context, "Mul")
    if product is None or _other(product, add.outputs[0]) is not scaled[0]:
        return False
    last = reader(product, context, "Mul", "Div")
    halved = _times_constant(last)
    if last is None or halved is None or not close(halved[1], 0.5) or last.inputs[0] is not product.outputs[0]:
        return False
    return _become("exGelu", last, scaled[0], [inner, op, add, product, last], context)


@rewrite("replace_torch_tanh_gelu", "Tanh")
def tanh_gelu(op: Op, context: Context) -> bool:
    """0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))), the cube by Pow or in the rule's own order of Muls."""
    add = reader(op, context, "Add")
    if add is None or _plus_constant(add, 1.0) is not op.outputs[0]:
        return False
    last = reader(add, context, "Mul")
    if last is None:
        return False
    half = producer(_other(last, add.outputs[0]), "Mul")
    halved = _times_constant(half)
    if half is None or halved is None or not close(halved[1], 0.5):
        return False
    source = halved[0]
    outer = producer(op.inputs[0], "Mul")
    scaled = _times_constant(outer)
    if outer is None or scaled is None or not close(scaled[1], sqrt(2 / pi)):
        return False
    total = producer(scaled[0], "Add")
    if total is None:
        return False
    cubic = producer(_other(total, source), "Mul")
    cubed = _times_constant(cubic)
    if cubic is None or cubed is None or not close(cubed[1], 0.044715):
        return False
    parts = [op, add, last, half, outer, total, cubic]
    power = producer(cubed[0], "Pow")
    if power is not None:
        if power.inputs[0] is not source or not close(number(power.input(1)), 3.0):
            return False
        return _become("exGelu", last, source, [*parts, power], context)
    return False


@rewrite("replace_torch_tanh_gelu", "Tanh")
def tanh_gelu_of_products(op: Op, context: Context) -> bool:
    """The same with the cube spelled as 0.044715 * x * x * x inside the sum, once ranks are wrapped."""
    if op.outputs[0].rank != 4:
        return False
    add = reader(op, context, "Add")
    if add is None or _plus_constant(add, 1.0) is not op.outputs[0]:
        return False
    last = reader(add, context, "Mul")
    half = producer(_other(last, add.outputs[0]), "Mul") if last is not None else None
    halved = _times_constant(half)
    outer = producer(op.inputs[0], "Mul")
    scaled = _times_constant(outer)
    total = producer(scaled[0], "Add") if scaled is not None else None
    if last is None or half is None or halved is None or outer is None or total is None:
        return False
    source = halved[0]
    cubic = producer(_other(total, source), "Mul")
    cubed = _times_constant(cubic)
    if cubic is None or cubed is None or not close(cubed[1], 0.044715):
        return False
    outer_product = producer(cubed[0], "Mul")
    if outer_product is None or source not in outer_product.inputs:
        return False
    square = producer(_other(outer_product, source), "Mul")
    if square is None or square.inputs != [source, source]:
        return False
    parts = [op, add, last, half, outer, total, cubic, outer_product, square]
    return _become("exGelu", last, source, parts, context)


@rewrite("replace_softplus_tanh_mul_by_exmish", "Softplus")
def mish(op: Op, context: Context) -> bool:
    """x * tanh(softplus(x))."""
    tanh = reader(op, context, "Tanh")
    last = reader(tanh, context, "Mul") if tanh is not None else None
    source = op.inputs[0]
    if tanh is None or last is None or source is None or _other(last, tanh.outputs[0]) is not source:
        return False
    return _become("exMish", last, source, [op, tanh, last], context)


@rewrite("replace_exp_add_log_by_softplus", "Exp")
def softplus(op: Op, context: Context) -> bool:
    """log(1 + exp(x))."""
    add = reader(op, context, "Add")
    log = reader(add, context, "Log") if add is not None else None
    source = op.inputs[0]
    if add is None or log is None or source is None or _plus_constant(add, 1.0) is not op.outputs[0]:
        return False
    return _become("Softplus", log, source, [op, add, log], context)


@rewrite("fuse_hardsigmoid_mul_to_hardswish", "HardSigmoid")
def hardswish(op: Op, context: Context) -> bool:
    """x * hardsigmoid(x) with alpha 1/6 and beta 0.5."""
    last = reader(op, context, "Mul")
    source = op.inputs[0]
    if last is None or source is None or _other(last, op.outputs[0]) is not source:
        return False
    if not close(op.attr("alpha", 0.2), 1 / 6) or not close(op.attr("beta", 0.5), 0.5):
        return False
    return _become("HardSwish", last, source, [op, last], context)


@rewrite("replace_torch_hardswish2", "Clip")
def hardswish_of_clip(op: Op, context: Context) -> bool:
    """x * clip(x + 3, 0, 6) / 6."""
    low = number(op.input(1)) if op.input(1) is not None else op.attr("min")
    high = number(op.input(2)) if op.input(2) is not None else op.attr("max")
    add = producer(op.inputs[0], "Add")
    source = _plus_constant(add, 3.0)
    product = reader(op, context, "Mul")
    if add is None or source is None or product is None or not close(low, 0.0) or not close(high, 6.0):
        return False
    if _other(product, op.outputs[0]) is not source:
        return False
    last = reader(product, context, "Mul", "Div")
    scaled = _times_constant(last)
    if last is None or scaled is None or not close(scaled[1], 1 / 6):
        return False
    return _become("HardSwish", last, source, [add, op, product, last], context)


@rewrite("fuse_split_sigmoid_mul_to_glu", "Split")
def glu(op: Op, context: Context) -> bool:
    """a * sigmoid(b) of the two halves of a value; on rank 3 the dimensions are brought to [.., c, 1, 1] first."""
    source = op.inputs[0]
    if len(op.outputs) != 2 or source is None or source.static_shape is None:
        return False
    value, gate = op.outputs
    sigmoid = next((o for o in gate.consumers()), None)
    if sigmoid is None or sigmoid.op_type != "Sigmoid" or len(gate.uses) != 1 or len(value.uses) != 1:
        return False
    last = reader(sigmoid, context, "Mul")
    if last is None or _other(last, sigmoid.outputs[0]) is not value or value.shape != gate.shape:
        return False
    axis = op.attr("axis", 0) % len(source.static_shape)
    return _become("exGlu", last, source, [op, sigmoid, last], context, axis=axis)


@rewrite("standardize_4d_glu", "exGlu")
def standardise_glu(op: Op, context: Context) -> bool:
    """exGlu of another rank or axis works on axis 1 of [before, c, 1, after]."""
    source = op.inputs[0]
    if source is None or source.static_shape is None or op.outputs[0].static_shape is None:
        return False
    shape, axis = source.static_shape, op.attr("axis")
    if len(shape) == 4 and axis == 1:
        return False
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    x = context.reshape(source, (before, shape[axis], 1, after), op.origins)
    view = (before, shape[axis] // 2, 1, after)
    y = context.add("exGlu", [x], [view], op.origins, {"axis": 1}, base=op.name).outputs[0]
    context.replace(op, context.reshape(y, op.outputs[0].static_shape, op.origins))
    return True
