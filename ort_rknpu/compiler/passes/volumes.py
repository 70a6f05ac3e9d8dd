"""Rewrites of convolutions and pools over volumes into those over maps, depth folded into the channels.

Models ``convert_3dconv_to_2dconv``, ``convert_3d_avgpool_to_3d_conv``, ``convert_3d_gavgpool_to_2d_gavgpool`` and the
like for transposed convolutions.
"""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, known, rewrite, shape_of
from ort_rknpu.graph import Op, Value

_ROWS = {"Conv": "Conv", "ConvTranspose": "ConvTranspose", "AveragePool": "Conv"}


@rewrite("convert_3dconv_to_2dconv", "Conv", "ConvTranspose", "AveragePool")
def volume_to_map(op: Op, context: Context) -> bool:
    """[n,c,d,h,w] is seen as [n,c*d,h,w]; one dense kernel over the map does the work of the kernel over the volume."""
    source = op.inputs[0]
    if source is None or source.rank != 5 or not known(op):
        return False
    n, c, d, h, w = shape_of(source)
    out = shape_of(op.outputs[0])
    kernel = op.attr("kernel_shape") or list(shape_of(op.input(1))[2:])
    strides = op.attr("strides") or [1, 1, 1]
    pads = op.attr("pads") or [0] * 6
    dilations = op.attr("dilations") or [1, 1, 1]
    x = context.reshape(source, (n, c * d, h, w), op.origins)
    deep = out[1] * out[2]
    shape = (c * d, deep, *kernel[1:]) if op.op_type == "ConvTranspose" else (deep, c * d, *kernel[1:])
    weight = Value(context.unique("volume"), shape, source.dtype, constant=True)
    attributes = {
        "kernel_shape": list(kernel[1:]),
        "strides": list(strides[1:]),
        "pads": [*pads[1:3], *pads[4:6]],
        "dilations": list(dilations[1:]),
    }
    row = context.add(
        _ROWS[op.op_type], [x, weight], [(n, deep, *out[3:])], op.origins, attributes, base=op.name
    ).outputs[0]
    context.replace(op, context.reshape(row, out, op.origins))
    return True


@rewrite("convert_3d_gavgpool_to_2d_gavgpool", "GlobalAveragePool")
def global_pool(op: Op, context: Context) -> bool:
    """[n,c,d,h,w] is pooled as a map of the same number of pixels."""
    source = op.inputs[0]
    if source is None or source.rank != 5 or not known(op):
        return False
    n, c, d, h, w = shape_of(source)
    x = context.reshape(source, (n, c, d * h, w), op.origins)
    y = context.add("GlobalAveragePool", [x], [(n, c, 1, 1)], op.origins, base=op.name).outputs[0]
    context.replace(op, context.reshape(y, shape_of(op.outputs[0]), op.origins))
    return True
