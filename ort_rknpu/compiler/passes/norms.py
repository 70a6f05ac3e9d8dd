"""Turns normalisations, ops or spelled out, into exNorm over axis 1 of a [n,c,..] view.

Models ``convert_layernorm_to_exnorm``, ``replace_torch_layernorm``, ``replace_rms_norm``, ``replace_rms_norm2``,
``convert_in_to_exnorm``, ``convert_lpnorm_to_exnorm`` and ``fuse_reducel2_div_to_lpnormalization``.
"""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.layout import invert, only_moves_ones
from ort_rknpu.compiler.passes.wrap_rank import reduced_axes
from ort_rknpu.compiler.rewriting import (
    Context,
    close,
    known,
    number,
    producer,
    reader,
    rewrite,
    shape_of,
    split_constant,
    union,
)
from ort_rknpu.graph import Op, Value

LONGEST_GROUP = 8192
"""From so many values in a group on its channels, h and w stay apart (measured 2.3.2: GroupNormalization of 8192)."""


def norm_over(
    source: Value, axis: int, mode: str, weights: list[Value | None], origins: frozenset[int], context: Context
) -> Value | None:
    """The normalised value: ``axis`` moved to 1, the rest laid out as [n,c,1,rest], exNorm, and back."""
    shape = shape_of(source)
    rank = len(shape)
    if rank < 2:
        return None
    channels = shape[axis]
    if rank == 3 and axis == 2 and shape[1] == 1 and shape[0] > 1:
        # one row per batch: the rows stand side by side
        flat = context.reshape(source, (1, shape[0], channels))
        inner = norm_over(flat, 2, mode, weights, origins, context)
        return None if inner is None else context.reshape(inner, shape)
    perm = [axis, 0] if rank == 2 else [0, axis, *(i for i in range(1, rank) if i != axis)]
    moved = context.transpose(source, perm, origins) if axis != 1 or rank == 2 else source
    batch = 1 if rank == 2 else shape[0]
    view = (batch, channels, 1, prod(shape) // (batch * channels))
    x = context.reshape(moved, view, origins)
    inputs = [x, *(None if w is None else context.constant(w, (1, channels, 1, 1)) for w in weights)]
    y = context.add("exNorm", inputs, [view], origins, {"axes": [1], "mode": mode}, base="norm").outputs[0]
    y = context.reshape(y, shape_of(moved), origins)
    return y if moved is source else context.transpose(y, invert(perm), origins)


def norm_over_all(source: Value, weights: list[Value | None], origins: frozenset[int], context: Context) -> Value:
    """Layer normalisation over everything but the batch: [n,c,h,w] with axes 1, 2, 3."""
    shape = shape_of(source)
    view = shape if len(shape) == 4 else (*shape[:2], 1, prod(shape[2:]))
    x = context.reshape(source, view, origins)
    inputs = [x, *weights]
    y = context.add("exNorm", inputs, [view], origins, {"axes": [1, 2, 3], "mode": "layer"}, base="norm").outputs[0]
    return context.reshape(y, shape, origins)


def norm_over_map(source: Value, weights: list[Value | None], origins: frozenset[int], context: Context) -> Value:
    """[n,c,..] normalised over everything but n and c: the map as channels, [n,h*w,1,c], then weights per channel."""
    shape = shape_of(source)
    perm = (0, *range(2, len(shape)), 1)
    turned = context.transpose(source, perm, origins)
    view = (shape[0], prod(shape[2:]), 1, shape[1])
    x = context.reshape(turned, view, origins)
    y = context.add("exNorm", [x], [view], origins, {"axes": [1], "mode": "layer"}, base="norm").outputs[0]
    for op_type, weight, neutral in zip(("Mul", "Add"), weights, (1.0, 0.0)):
        if weight is not None and (weight.const is None or not (weight.const == neutral).all()):
            operand = context.reshape(weight, (1, 1, 1, shape[1]), origins)
            y = context.add(op_type, [y, operand], [view], origins, base=op_type).outputs[0]
    return context.transpose(context.reshape(y, shape_of(turned), origins), invert(perm), origins)


@rewrite("bypass_rs_exnorm_rs", "Reshape")
def group_norm(op: Op, context: Context) -> bool:
    """[1,c,h,w] -> [1,g,1,l] -> [1,l,1,g] -> exNorm and back: every group becomes a batch, [g,l,1,1]."""
    first = reader(op, context, "Transpose")
    norm = reader(first, context, "exNorm") if first is not None else None
    second = reader(norm, context, "Transpose") if norm is not None else None
    last = reader(second, context, "Reshape") if second is not None else None
    source = op.inputs[0]
    if first is None or norm is None or second is None or last is None or source is None or not known(op):
        return False
    if list(first.attr("perm")) != [0, 3, 2, 1] or list(second.attr("perm")) != [0, 3, 2, 1] or len(norm.inputs) > 1:
        return False
    n, groups, h, length = shape_of(op.outputs[0])
    shape = shape_of(source)
    if (n, h) != (1, 1) or norm.attr("axes") != [1] or only_moves_ones(shape, shape_of(op.outputs[0])):
        return False
    view: tuple[int, ...] = (groups, length, 1, 1)
    axes = [1]
    if length >= LONGEST_GROUP and len(shape) == 4 and shape[1] % groups == 0:
        view, axes = (groups, shape[1] // groups, *shape[2:]), [1, 2, 3]
    origins = union(op, first, norm, second, last)
    x = context.reshape(source, view, origins)
    y = context.add("exNorm", [x], [view], norm.origins, {**norm.attributes, "axes": axes}, base=norm.name).outputs[0]
    context.replace(last, context.reshape(y, shape_of(last.outputs[0]), origins))
    return True


@rewrite("convert_layernorm_to_exnorm", "LayerNormalization")
def layernorm(op: Op, context: Context) -> bool:
    """LayerNormalization over the last axis, over all axes from 1 on, or over those from 2 on seen as one."""
    source = op.inputs[0]
    if source is None or not known(op) or any(v.uses or context.graph.is_output(v) for v in op.outputs[1:]):
        return False
    rank = len(shape_of(source))
    axis = op.attr("axis", -1) % rank
    weights = [op.input(1), op.input(2)]
    if axis == rank - 1:
        result = norm_over(source, axis, "layer", weights, op.origins, context)
    elif axis == 1:
        result = norm_over_all(source, weights, op.origins, context)
    elif axis > 1:
        flat = (*shape_of(source)[:axis], prod(shape_of(source)[axis:]))
        result = norm_over(context.reshape(source, flat, op.origins), axis, "layer", weights, op.origins, context)
        result = None if result is None else context.reshape(result, shape_of(source), op.origins)
    else:
        return False
    if result is None:
        return False
    op.outputs = op.outputs[:1]
    context.replace(op, result)
    return True


def _is_square(op: Op | None, value: Value) -> bool:
    if op is None or op.inputs[0] is not value:
        return False
    return (op.op_type == "Pow" and close(number(op.input(1)), 2.0)) or (op.op_type == "Mul" and op.inputs[1] is value)


@rewrite("replace_torch_layernorm", "ReduceMean")
def spelled_layernorm(op: Op, context: Context) -> bool:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps), with weight and bias where they follow."""
    source = op.inputs[0]
    axes = reduced_axes(op)
    if source is None or not known(op) or axes is None or not op.attr("keepdims", 1):
        return False
    over_map = axes == [2, 3] and source.rank == 4
    if len(axes) != 1 and not over_map:
        return False
    sub = reader(op, context, "Sub")
    if sub is None or sub.inputs[0] is not source:
        return False
    squares = [o for o in sub.outputs[0].consumers() if o.op_type in ("Pow", "Mul") and _is_square(o, sub.outputs[0])]
    if len(squares) != 1:
        return False
    mean = reader(squares[0], context, "ReduceMean")
    add = reader(mean, context, "Add") if mean is not None and reduced_axes(mean) == axes else None
    root = reader(add, context, "Sqrt") if add is not None else None
    div = reader(root, context, "Div") if root is not None else None
    if mean is None or add is None or root is None or div is None or div.inputs[0] is not sub.outputs[0]:
        return False
    parts = [op, sub, squares[0], mean, add, root, div]
    last = div
    weights: list[Value | None] = []
    channels = shape_of(source)[axes[0]]
    for op_type in () if over_map else ("Mul", "Add"):
        following = reader(last, context, op_type)
        pair = split_constant(following) if following is not None else None
        if following is None or pair is None or prod(shape_of(pair[1])) != channels:
            break
        weights.append(pair[1])
        parts.append(following)
        last = following
    if over_map:
        result: Value | None = norm_over_map(source, [], union(*parts), context)
    else:
        result = norm_over(source, axes[0], "layer", weights, union(*parts), context)
    if result is None:
        return False
    context.replace(last, result)
    return True


@rewrite("replace_rms_norm", "Pow")
def spelled_rms_norm(op: Op, context: Context) -> bool:
    """x * (1 / sqrt(mean(x^2) + eps)) * w; without the weight, or with a Reciprocal, it stays as it is."""
    source = op.inputs[0]
    if source is None or not _is_square(op, source) or not known(op):
        return False
    mean = reader(op, context, "ReduceMean")
    axes = reduced_axes(mean) if mean is not None else None
    if mean is None or axes is None or len(axes) != 1:
        return False
    add = reader(mean, context, "Add")
    root = reader(add, context, "Sqrt") if add is not None else None
    inverse = reader(root, context, "Div") if root is not None else None
    if add is None or root is None or inverse is None:
        return False
    if not close(number(inverse.inputs[0]), 1.0) or inverse.inputs[1] is not root.outputs[0]:
        return False
    scaled = reader(inverse, context, "Mul")
    if scaled is None or source not in scaled.inputs:
        return False
    parts = [op, mean, add, root, inverse, scaled]
    tail = scaled
    cast = reader(tail, context, "Cast")
    if cast is not None:
        parts.append(cast)
        tail = cast
    weighted = reader(tail, context, "Mul")
    pair = split_constant(weighted) if weighted is not None else None
    if weighted is None or pair is None or prod(shape_of(pair[1])) != shape_of(source)[axes[0]]:
        return False
    before = producer(source, "Cast")
    origins = union(*parts, weighted)
    result = norm_over(source, axes[0], "rms", [pair[1]], origins, context)
    if result is None or before is weighted:
        return False
    context.replace(weighted, result)
    return True


@rewrite("convert_in_to_exnorm", "InstanceNormalization")
def instance_norm(op: Op, context: Context) -> bool:
    """InstanceNormalization: batch and channels stand in the last place, the map is what is normalised."""
    source = op.inputs[0]
    if source is None or not known(op) or (source.rank or 0) < 3:
        return False
    shape = shape_of(source)
    flat = source if len(shape) <= 4 else context.reshape(source, (*shape[:2], prod(shape[2:])), op.origins)
    y = norm_over_map(flat, [op.input(1), op.input(2)], op.origins, context)
    context.replace(op, context.reshape(y, shape, op.origins))
    return True


@rewrite("convert_lpnorm_to_exnorm", "LpNormalization")
def lp_norm(op: Op, context: Context) -> bool:
    """LpNormalization, whatever its p (measured 2.3.2: probes LpNorm p1)."""
    source = op.inputs[0]
    if source is None or not known(op):
        return False
    axis = op.attr("axis", -1) % len(shape_of(source))
    result = norm_over(source, axis, "l2", [], op.origins, context)
    if result is None:
        return False
    context.replace(op, result)
    return True


@rewrite("fuse_reducel2_div_to_lpnormalization", "ReduceL2")
def spelled_lp_norm(op: Op, context: Context) -> bool:
    """x / expand(clip(l2(x), 1e-12))."""
    source = op.inputs[0]
    axes = reduced_axes(op)
    if source is None or not known(op) or axes is None or len(axes) != 1 or not op.attr("keepdims", 1):
        return False
    clip = reader(op, context, "Clip")
    expand = reader(clip, context, "Expand") if clip is not None else None
    div = reader(expand, context, "Div") if expand is not None else None
    if clip is None or expand is None or div is None or div.inputs[0] is not source:
        return False
    low = number(clip.input(1)) if clip.input(1) is not None else clip.attr("min")
    if low is None or low > 1e-6:
        return False
    result = norm_over(source, axes[0], "l2", [], union(op, clip, expand, div), context)
    if result is None:
        return False
    context.replace(div, result)
    return True
