"""Convolution and transposed convolution: kernel, strides, pads, dilations, group, the first layer's width."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules.attributes import per_axis
from ort_rknpu.rules.facts import Values, base_values, dims, output, text
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.rules.io_limits import first_layer_width, is_model_input
from ort_rknpu.targets.ruledata import definitions
from ort_rknpu.targets.rules import Limit

_NAMES = (
    "kernel_h",
    "kernel_w",
    "strides_h",
    "strides_w",
    "dilations_h",
    "dilations_w",
    "pads_top",
    "pads_left",
    "pads_bottom",
    "pads_right",
    "output_padding_h",
    "output_padding_w",
    "dilated_kernel_h",
    "dilated_kernel_w",
)


def is_depthwise(op: Op) -> bool | None:
    """Whether every input channel has a filter of its own (group = channels in = channels out, reading 33)."""
    group = op.attr("group", 1)
    if group == 1:
        return False
    channels_in, channels_out = _channels(op, group)
    if channels_in is None or channels_out is None:
        return None
    return bool(channels_in == channels_out == group)


def conv_values(op: Op) -> Values:
    """The values of a Conv or ConvTranspose, or of a fused op that carries its attributes."""
    values = base_values(op)
    group = op.attr("group", 1)
    num_input, num_output = _channels(op, group)
    values |= {"group": group, "num_input": num_input, "num_output": num_output}
    if values["channel"] is None:
        values["channel"] = num_input
    kernel = op.attr("kernel_shape") or _weight_spatial(op)
    values |= dict.fromkeys(_NAMES)
    if kernel is None or not 1 <= len(kernel) <= 2:
        return values
    rank = len(kernel)
    strides, dilations = per_axis(op, "strides", rank, 1), per_axis(op, "dilations", rank, 1)
    padding = per_axis(op, "output_padding", rank, 0)
    spatial = (values["height"], values["width"])[-rank:]
    pads = resolve_pads(op, spatial, kernel, strides, dilations, "Transpose" in op.op_type)
    for name, items, absent in (
        ("kernel", kernel, 1),
        ("strides", strides, 1),
        ("dilations", dilations, 1),
        ("output_padding", padding, 0),
    ):
        values[f"{name}_h"], values[f"{name}_w"] = pair(items, absent)
    values["pads_top"], values["pads_left"] = pair(pads[:rank], 0)
    values["pads_bottom"], values["pads_right"] = pair(pads[rank:], 0)
    for name, expression in definitions().items():
        values[name] = expression(values)
    return values


def pair(items: Any, absent: int) -> tuple[Any, Any]:
    """(height, width) of one or two numbers; one is the width."""
    return (absent, items[0]) if len(items) == 1 else (items[0], items[1])


def resolve_pads(
    op: Op,
    spatial: tuple[int | None, ...],
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    transposed: bool = False,
) -> list[int | None]:
    """Explicit pads, begins then ends; ``auto_pad`` and ``output_shape`` are worked out as ONNX defines them."""
    rank = len(kernel)
    auto_pad = text(op.attr("auto_pad", "NOTSET")) or "NOTSET"
    output_shape = per_axis(op, "output_shape", rank, 0) if op.attr("output_shape") else None
    if auto_pad == "VALID" and not output_shape:
        return [0] * (2 * rank)
    if auto_pad == "NOTSET" and not output_shape:
        return [*per_axis(op, "pads", 2 * rank, 0)]
    begins: list[int | None] = []
    ends: list[int | None] = []
    for axis, length in enumerate(spatial):
        if length is None or strides[axis] < 1:
            begins.append(None)
            ends.append(None)
            continue
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        if transposed:
            wanted = output_shape[axis] if output_shape else length * strides[axis]
            extra = per_axis(op, "output_padding", rank, 0)[axis]
            total = strides[axis] * (length - 1) + extra + reach - wanted
        else:
            total = (math.ceil(length / strides[axis]) - 1) * strides[axis] + reach - length
        total = max(total, 0)
        small, large = total // 2, total - total // 2
        odd_first = auto_pad != "SAME_UPPER" if transposed else auto_pad == "SAME_LOWER"
        begins.append(large if odd_first else small)
        ends.append(small if odd_first else large)
    return begins + ends


def _weight_spatial(op: Op) -> list[int] | None:
    weight = op.input(1)
    shape = None if weight is None else weight.static_shape
    return None if shape is None else list(shape[2:])


def _channels(op: Op, group: int) -> tuple[int | None, int | None]:
    """Channels in and out, from the weight or, where that is not known, from input and output."""
    weight = op.input(1)
    shape = None if weight is None or weight.shape is None or len(weight.shape) < 2 else weight.shape
    if shape is not None and isinstance(shape[0], int) and isinstance(shape[1], int):
        first, second = shape[0], shape[1]
        return (first, second * group) if "Transpose" in op.op_type else (second * group, first)
    return dims(op.input(0))[1], dims(output(op))[1]


def first_layer(case: Case, limit: Limit) -> Iterator[Finding]:
    """The width limit of chapter 5 where the convolution reads an image input of the model."""
    value = case.op.input(0)
    if value is not None and is_model_input(value):
        yield from first_layer_width(case, value)
