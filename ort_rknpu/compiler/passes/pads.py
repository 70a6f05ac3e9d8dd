"""Turns a Pad that shifts the channels into a 1x1 Conv.

Models ``convert_pad_to_conv``.
"""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, known, numbers, rewrite, shape_of
from ort_rknpu.graph import Op, Value

MOST_CHANNELS = 512
"""Channels of the widest such Conv (measured 2.3.2: probes Pad L)."""


@rewrite("convert_pad_to_conv", "Pad")
def pad_to_conv(op: Op, context: Context) -> bool:
    """A Pad in front of the channels and of nothing else, in any mode, up to 512 channels."""
    source = op.inputs[0]
    pads = numbers(op.input(1)) or op.attr("pads")
    if source is None or source.rank != 4 or not known(op) or pads is None or len(pads) != 8:
        return False
    if pads[1] <= 0 or any(pads[axis] for axis in (0, 2, 3, 4, 6, 7)) or op.input(3) is not None:
        return False
    out = shape_of(op.outputs[0])
    if out[1] > MOST_CHANNELS:
        return False
    kernel = Value(context.unique("shift"), (out[1], shape_of(source)[1], 1, 1), source.dtype, constant=True)
    conv = context.add("Conv", [source, kernel], [out], op.origins, {"kernel_shape": [1, 1]}, base=op.name)
    context.replace(op, conv.outputs[0])
    return True
