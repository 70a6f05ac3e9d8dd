"""Rewrites of max pools into cascades, and of old or quantising ops into their present form.

Models ``tiling_global_maxpool``, ``convert_maxpool_to_global_maxpool``, ``tiling_maxpool``,
``convert_upsample_to_resize`` and the row that QuantizeLinear and DequantizeLinear compile to.
"""

from __future__ import annotations

from math import ceil

from ort_rknpu.compiler.rewriting import Context, known, rewrite, shape_of
from ort_rknpu.graph import Op, Value

WIDE_POOL = "wide_pool"
"""Feature of toolkits that cut every max pool of a side above 7 into a cascade, not only square ones of stride 1."""
STAGE = 7
"""Kernel side of one stage of a cascade (measured 2.3.2: probes GlobalMaxPool hw)."""


@rewrite("tiling_global_maxpool", "GlobalMaxPool")
def global_max_pool(op: Op, context: Context) -> bool:
    """A global max pool becomes MaxPools of kernel and stride 7, one after another, until one pixel is left."""
    source = op.inputs[0]
    if source is None or source.rank != 4 or not known(op) or shape_of(source)[2:] == (1, 1):
        return False
    _to_one_pixel(op, source, context)
    return True


def _to_one_pixel(op: Op, source: Value, context: Context) -> None:
    n, c, h, w = shape_of(source)
    value = source
    while True:
        kernel = [min(h, STAGE), min(w, STAGE)]
        h, w = ceil(h / kernel[0]), ceil(w / kernel[1])
        attributes = {"kernel_shape": kernel, "strides": kernel, "ceil_mode": 1}
        value = context.add("MaxPool", [value], [(n, c, h, w)], op.origins, attributes, base=op.name).outputs[0]
        if h == w == 1:
            break
    context.replace(op, value)


@rewrite("tiling_maxpool", "MaxPool")
def max_pool(op: Op, context: Context) -> bool:
    """A MaxPool over the whole map is a global one; a large one becomes two, the second with the strides."""
    source, kernel = op.inputs[0], op.attr("kernel_shape")
    if source is None or source.rank != 4 or not known(op) or len(op.outputs) > 1 or not kernel or len(kernel) != 2:
        return False
    strides, pads = op.attr("strides") or [1, 1], op.attr("pads") or [0, 0, 0, 0]
    if max(op.attr("dilations") or [1]) > 1 or max(kernel) <= STAGE:
        return False
    if tuple(kernel) == shape_of(source)[2:] and not any(pads):
        _to_one_pixel(op, source, context)
        return True
    square = kernel[0] == kernel[1] and max(strides) == 1
    if op.attr("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID") or not (square or context.has(WIDE_POOL)):
        return False
    first = [min(k, STAGE) for k in kernel]
    rest = [k - f + 1 for k, f in zip(kernel, first)]
    n, c, h, w = shape_of(source)
    between = (n, c, h + pads[0] + pads[2] - first[0] + 1, w + pads[1] + pads[3] - first[1] + 1)
    lead = {"kernel_shape": first, "strides": [1, 1], "pads": list(pads)}
    value = context.add("MaxPool", [source], [between], op.origins, lead, base=op.name).outputs[0]
    follow = {**op.attributes, "kernel_shape": rest, "strides": list(strides), "pads": [0, 0, 0, 0]}
    last = context.add("MaxPool", [value], [shape_of(op.outputs[0])], op.origins, follow, base=op.name)
    context.replace(op, last.outputs[0])
    return True


@rewrite("convert_upsample_to_resize", "Upsample")
def upsample(op: Op, context: Context) -> bool:
    """Upsample is a Resize with asymmetric coordinates."""
    if op.inputs[0] is None or not known(op):
        return False
    attributes = {"mode": op.attr("mode", "nearest"), "coordinate_transformation_mode": "asymmetric"}
    inputs = [op.inputs[0], None, op.input(1)]
    new = context.add("Resize", inputs, [shape_of(op.outputs[0])], op.origins, attributes, base=op.name)
    context.replace(op, new.outputs[0])
    return True


@rewrite("convert_quantize_to_data_convert", "QuantizeLinear", "DequantizeLinear")
def data_convert(op: Op, context: Context) -> bool:
    """Quantising and dequantising are conversions of the datatype."""
    source, result = op.inputs[0], op.outputs[0]
    if source is None or not known(op):
        return False
    new = context.add("exDataConvert", [source], [shape_of(result)], op.origins, base=op.name, dtype=result.dtype)
    context.replace(op, new.outputs[0])
    return True
