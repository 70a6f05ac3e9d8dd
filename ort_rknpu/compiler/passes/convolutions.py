"""Rewrites into and of convolutions and pools.

Models ``convert_avgpool_to_conv``, ``convert_global_avgpool_to_conv``, ``convert_depth2space_to_deconv2d``,
``convert_large_dilation_conv_to_normal_conv``, ``fuse_bn_into_conv``, ``fuse_add_into_conv``, ``fuse_mul_into_conv``,
``fuse_pad_into_conv``, ``opt_tp_batch_conv_tp``, ``swap_transpose_conv`` and ``swap_reshape_conv``. Cascades that stay
on the NPU as a whole (large kernels, large strides, global pools) are shown as the one op they stand for.
"""

from __future__ import annotations

import numpy as np

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.rewriting import (
    Context,
    known,
    numbers,
    producer,
    reader,
    rewrite,
    shape_of,
    split_constant,
    union,
)
from ort_rknpu.graph import Op, Value

AVERAGE_POOL_AS_CONV = "average_pool_as_conv"
"""Feature of targets that compile every AveragePool to a Conv."""
ANY_STRIDE_UP = "any_stride_up"
"""Feature of targets whose ConvTranspose takes other strides than 1, 2, 4 and 8."""
STRIDES_IN_STEPS = "strides_in_steps"
"""Feature of toolkits that take a stride of 16 as 8 and 2, one ConvTranspose after another."""
LARGEST_DILATION = 31
"""The largest dilation the compiler leaves to the hardware (measured 2.3.2: probes Conv dilations)."""


@rewrite("convert_global_avgpool_to_conv", "GlobalAveragePool")
def global_average_pool(op: Op, context: Context) -> bool:
    """GlobalAveragePool of more than one pixel becomes depthwise Convs."""
    source = op.inputs[0]
    if source is None or source.rank != 4 or not known(op):
        return False
    _, c, h, w = shape_of(source)
    if h == w == 1:
        return False
    _depthwise(op, source, [h, w], [1, 1], [0, 0, 0, 0], context)
    return c > 0


def _depthwise(op: Op, source: Value, kernel: list[int], strides: list[int], pads: list[int], context: Context) -> None:
    channels = shape_of(source)[1]
    weight = Value(context.unique("average"), (channels, 1, *kernel), source.dtype, constant=True)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "group": channels, "pool": 1}
    conv = context.add("Conv", [source, weight], [shape_of(op.outputs[0])], op.origins, attributes, base=op.name)
    context.replace(op, conv.outputs[0])


def _pads(op: Op) -> list[int] | None:
    """The pads of a rank-4 pool or Conv, or None where auto_pad chooses them."""
    if op.attr("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
        return None
    return list(op.attr("pads") or [0, 0, 0, 0])


@rewrite("convert_avgpool_to_conv", "AveragePool")
def average_pool(op: Op, context: Context) -> bool:
    """An AveragePool that counts its padding becomes a depthwise Conv: large ones everywhere, all on some targets."""
    source = op.inputs[0]
    if source is None or source.rank != 4 or not known(op):
        return False
    kernel, pads = op.attr("kernel_shape"), _pads(op)
    strides = op.attr("strides") or [1, 1]
    if pads is None or (any(pads) and not op.attr("count_include_pad", 0)) or op.attr("ceil_mode", 0):
        return False
    if max(kernel) <= 7 and max(strides) < 8 and not context.has(AVERAGE_POOL_AS_CONV):
        return False
    _depthwise(op, source, list(kernel), list(strides), pads, context)
    return True


@rewrite("convert_depth2space_to_deconv2d", "DepthToSpace")
def depth_to_space(op: Op, context: Context) -> bool:
    """DepthToSpace becomes a ConvTranspose of kernel and stride blocksize."""
    source = op.inputs[0]
    if source is None or source.rank != 4 or not known(op):
        return False
    block = op.attr("blocksize", 1)
    if block not in (1, 2, 4, 8) and not context.has(ANY_STRIDE_UP):
        return False
    weight = Value(
        context.unique("kernel"),
        (shape_of(source)[1], shape_of(op.outputs[0])[1], block, block),
        source.dtype,
        constant=True,
    )
    attributes = {"kernel_shape": [block, block], "strides": [block, block]}
    new = context.add(
        "ConvTranspose", [source, weight], [shape_of(op.outputs[0])], op.origins, attributes, base=op.name
    )
    context.replace(op, new.outputs[0])
    return True


@rewrite("convert_deconv_to_conv", "ConvTranspose")
def stride_up(op: Op, context: Context) -> bool:
    """A ConvTranspose of another stride than 1, 2, 4, 8 spreads its input on the CPU and becomes a Conv."""
    source, weight = op.inputs[0], op.inputs[1]
    if source is None or weight is None or source.rank != 4 or not known(op) or context.has(ANY_STRIDE_UP):
        return False
    strides = op.attr("strides") or [1, 1]
    own = {1, 2, 4, 8} | ({16} if context.has(STRIDES_IN_STEPS) else set())
    if set(strides) <= own:
        return False
    kernel = list(shape_of(weight)[2:])
    n, c = shape_of(source)[:2]
    out = shape_of(op.outputs[0])
    spread = (n, c, out[2] + kernel[0] - 1, out[3] + kernel[1] - 1)
    x = context.add("exConvTransposePad", [source], [spread], op.origins, base="pad").outputs[0]
    attributes = {"kernel_shape": kernel, "strides": [1, 1], "pads": [0, 0, 0, 0], "group": op.attr("group", 1)}
    kernels = Value(context.unique("kernel"), (out[1], shape_of(weight)[0], *kernel), weight.dtype, constant=True)
    conv = context.add("Conv", [x, kernels, *op.inputs[2:]], [out], op.origins, attributes, base=op.name)
    context.replace(op, conv.outputs[0])
    return True


@rewrite("convert_large_dilation_conv_to_normal_conv", "Conv")
def large_dilation(op: Op, context: Context) -> bool:
    """Along an axis of larger dilation a Conv reads a Pad and a Gather that bring its taps together."""
    source, weight = op.inputs[0], op.inputs[1]
    dilations = list(op.attr("dilations") or [1, 1])
    pads, strides = _pads(op), list(op.attr("strides") or [1, 1])
    if source is None or weight is None or source.rank != 4 or not known(op) or pads is None or len(dilations) != 2:
        return False
    kernel = shape_of(weight)[2:]
    axis = next((i for i in (0, 1) if dilations[i] > LARGEST_DILATION and kernel[i] > 1), None)
    if axis is None:
        return False
    x, out = source, shape_of(op.outputs[0])
    shape = list(shape_of(x))
    if pads[axis] or pads[axis + 2]:
        amounts = np.zeros(8, np.int64)
        amounts[2 + axis], amounts[6 + axis] = pads[axis], pads[axis + 2]
        shape[2 + axis] += pads[axis] + pads[axis + 2]
        size = Value(context.unique("pads"), (8,), "int64", amounts)
        x = context.add("Pad", [x, size], [shape], op.origins, base="pad").outputs[0]
    places = range(out[2 + axis])
    taps = np.array([p * strides[axis] + k * dilations[axis] for p in places for k in range(kernel[axis])])
    shape[2 + axis] = len(taps)
    index = Value(context.unique("taps"), taps.shape, "int64", taps)
    x = context.add("Gather", [x, index], [shape], op.origins, {"axis": 2 + axis}, base="gather").outputs[0]
    pads[axis] = pads[axis + 2] = 0
    dilations[axis], strides[axis] = 1, kernel[axis]
    op.set_input(0, x)
    op.attributes = {**op.attributes, "dilations": dilations, "strides": strides, "pads": pads}
    return True


@rewrite("fuse_bn_into_conv", "Conv", "ConvTranspose", "BatchNormalization")
def batch_norm(op: Op, context: Context) -> bool:
    """A BatchNormalization behind a Conv, or in front of one without padding, goes into its weights."""
    if op.op_type == "BatchNormalization":
        return False
    following = reader(op, context, "BatchNormalization")
    if following is None or any(v.uses for v in following.outputs[1:]):
        return False
    return _absorb(op, following, context)


def _absorb(op: Op, following: Op, context: Context) -> bool:
    """``following`` computes nothing of its own any more: its readers read ``op``."""
    op.origins |= following.origins
    context.replace(following, op.outputs[0])
    return True


@rewrite("fuse_add_into_conv", "Conv", "ConvTranspose")
def constant_into_conv(op: Op, context: Context) -> bool:
    """Adding or multiplying a constant number per channel behind a Conv goes into its weights."""
    following = reader(op, context, "Add", "Mul")
    pair = split_constant(following) if following is not None else None
    if following is None or pair is None or following.outputs[0].shape != op.outputs[0].shape or not known(op):
        return False
    shape = shape_of(pair[1])
    channels = shape_of(op.outputs[0])[1]
    aligned = (1,) * (4 - len(shape)) + shape
    if len(shape) > 4 or aligned not in ((1, 1, 1, 1), (1, channels, 1, 1)):
        return False
    return _absorb(op, following, context)


@rewrite("fuse_pad_into_conv", "Pad")
def pad_into_conv(op: Op, context: Context) -> bool:
    """A constant Pad by zeros of h and w goes into the Conv behind it."""
    conv = reader(op, context, "Conv")
    amounts = numbers(op.input(1)) or op.attr("pads")
    if conv is None or amounts is None or len(amounts) != 8 or op.attr("mode", "constant") != "constant":
        return False
    own = _pads(conv)
    content = op.input(2)
    if own is None or (content is not None and (content.const is None or content.const.any())) or op.attr("value", 0):
        return False
    if any(amounts[i] for i in (0, 1, 4, 5)) or min(amounts) < 0:
        return False
    total = [own[0] + amounts[2], own[1] + amounts[3], own[2] + amounts[6], own[3] + amounts[7]]
    conv.attributes = {**conv.attributes, "pads": total}
    conv.origins |= op.origins
    return context.bypass(op)


def _is_pointwise(op: Op) -> bool:
    weight = op.inputs[1]
    return (
        weight is not None
        and len(shape_of(weight)) == 4
        and shape_of(weight)[2:] == (1, 1)
        and op.attr("group", 1) == 1
        and max(op.attr("strides") or [1]) == 1
        and not any(op.attr("pads") or [0])
    )


@rewrite("opt_tp_batch_conv_tp", "Conv")
def batch_between_transposes(op: Op, context: Context) -> bool:
    """A 1x1 Conv on [b,k,1,w] between Transposes works on [1,k,b,w] instead."""
    first = producer(op.inputs[0], "Transpose")
    last = reader(op, context, "Transpose")
    if first is None or last is None or len(first.outputs[0].uses) > 1 or not _is_pointwise(op) or not known(op):
        return False
    shape = shape_of(op.inputs[0])
    if shape[0] == 1 or shape[2] != 1 or shape_of(first.inputs[0])[0] != 1:
        return False
    before, perm = shape_of(first.inputs[0]), list(first.attr("perm"))
    ones = [axis for axis in perm if before[axis] == 1]
    new_perm = [ones[0] if len(ones) > 1 else perm[2], perm[1], perm[0], perm[3]]
    if sorted(new_perm) != [0, 1, 2, 3] or before[new_perm[0]] != 1:
        return False
    n, k, _, w = shape
    out = shape_of(op.outputs[0])[1]
    first.attributes = {**first.attributes, "perm": new_perm}
    first.outputs[0].shape = (1, k, n, w)
    op.outputs[0].shape = (1, out, n, w)
    swap = {0: 2, 2: 0, 1: 1, 3: 3}
    after = [swap[axis] for axis in last.attr("perm")]
    target = shape_of(last.outputs[0])
    if layout.permute(shape_of(op.outputs[0]), after) != target:
        fixed = layout.ones_as_transpose(layout.permute(shape_of(op.outputs[0]), after), target)
        after = list(layout.compose(after, fixed)) if fixed is not None else after
    last.attributes = {**last.attributes, "perm": after}
    first.origins = op.origins = last.origins = union(first, op, last)
    return True


@rewrite("swap_transpose_conv", "Transpose")
def transpose_past_conv(op: Op, context: Context) -> bool:
    """A Transpose that keeps c in place moves behind the 1x1 Conv that reads it."""
    conv = reader(op, context, "Conv")
    perm, source = list(op.attr("perm")), op.inputs[0]
    if conv is None or source is None or not _is_pointwise(conv) or not known(conv) or len(perm) != 4 or perm[1] != 1:
        return False
    n, _, h, w = shape_of(source)
    _swap(op, conv, (n, shape_of(conv.outputs[0])[1], h, w), context)
    return True


@rewrite("swap_reshape_conv", "Reshape")
def reshape_past_conv(op: Op, context: Context) -> bool:
    """A Reshape that keeps n and c moves behind the 1x1 Conv that reads it."""
    conv = reader(op, context, "Conv")
    source = op.inputs[0]
    if conv is None or source is None or not _is_pointwise(conv) or not known(conv):
        return False
    if source.producer is None and reader(conv, context, "Reshape") is None:
        return False
    before, inner = shape_of(source), shape_of(op.outputs[0])
    if len(before) != 4 or len(inner) != 4 or before[:2] != inner[:2]:
        return False
    _swap(op, conv, (before[0], shape_of(conv.outputs[0])[1], *before[2:]), context)
    return True


def _swap(first: Op, conv: Op, between: tuple[int, ...], context: Context) -> None:
    """Lets ``conv`` run before ``first`` with a value of shape ``between`` in the middle."""
    out = conv.outputs[0]
    middle = Value(context.unique(f"{out.name}_sw"), between, out.dtype)
    first.outputs[0].producer = None
    conv.set_input(0, first.inputs[0])
    conv.outputs = [middle]
    middle.producer = conv
    first.set_inputs([middle])
    first.outputs = [out]
    out.producer = first
