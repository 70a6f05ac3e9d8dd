"""Activations, gates, softmax and windows as ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Callable

from custom_ops.lowering.builder import Builder
from custom_ops.shapes import normalize_axis

Inputs = list[str]


def swish(b: Builder, inputs: Inputs) -> list[str]:
    """Sigmoid and Mul, which ONNX Runtime fuses."""
    x, beta = inputs[0], b.attributes["beta"]
    scaled = x if beta == 1 else b.call("Mul", x, b.scalar(beta, "beta"))
    return [b.call("Mul", x, b.call("Sigmoid", scaled))]


def mish(b: Builder, inputs: Inputs) -> list[str]:
    """tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2): several times as fast as Softplus and Tanh.

    Beyond 20 the quotient is 1 to the last place of float64, so the exponent stops there.
    """
    x = inputs[0]
    e = b.call("Exp", b.call("Clip", x, "", b.scalar(20, "limit")))
    n = b.call("Mul", e, b.call("Add", e, b.scalar(2, "two")))
    return [b.call("Mul", x, b.call("Div", n, b.call("Add", n, b.scalar(2, "two"))))]


def gelu(b: Builder, inputs: Inputs) -> list[str]:
    """The erf form, spelled so that ONNX Runtime fuses it."""
    scaled = b.call("Div", inputs[0], b.scalar(math.sqrt(2), "sqrt2"))
    gate = b.call("Add", b.in_float32(lambda value: b.call("Erf", value), scaled), b.scalar(1, "one"))
    return [b.call("Mul", b.call("Mul", inputs[0], gate), b.scalar(0.5, "half"))]


def hard_swish(b: Builder, inputs: Inputs) -> list[str]:
    """HardSigmoid and Mul: what the ONNX operator HardSwish expands to."""
    gate = b.in_float32(lambda value: b.call("HardSigmoid", value, alpha=1 / 6, beta=0.5), inputs[0])
    return [b.call("Mul", inputs[0], gate)]


def swoosh(shift: float, offset: float) -> Callable[[Builder, Inputs], list[str]]:
    """softplus(x - shift) - offset - 0.08 x, the first two as log(exp(z) + exp(-offset)), z = x - shift - offset.

    Beyond 40 the logarithm is z to the last place of float64; the exponent stops there and the larger one counts.
    """

    def lower(b: Builder, inputs: Inputs) -> list[str]:
        z = b.call("Sub", inputs[0], b.scalar(shift + offset, "shift"))
        e = b.call("Exp", b.call("Clip", z, "", b.scalar(40, "limit")))
        log = b.call("Log", b.call("Add", e, b.scalar(math.exp(-offset), "offset")))
        return [b.call("Sub", b.call("Max", log, z), b.call("Mul", inputs[0], b.scalar(0.08, "slope")))]

    return lower


def glu(b: Builder, inputs: Inputs) -> list[str]:
    """Split, Sigmoid, Mul. Sizes are given to Split, which would otherwise cut an odd axis unevenly."""
    axis, shape = b.attributes["axis"], b.shapes[0]
    size = None if shape is None else shape[normalize_axis(axis, len(shape))]
    if isinstance(size, int):
        sizes = b.ints([size // 2] * 2, "sizes")
    else:
        whole = b.call("Gather", b.call("Shape", inputs[0]), b.ints([axis, axis], "axis"))
        sizes = b.call("Div", whole, b.ints([2], "two"))
    value, gate = b.call("Split", inputs[0], sizes, outputs=2, axis=axis)
    return [b.call("Mul", value, b.call("Sigmoid", gate))]


def softmax(b: Builder, inputs: Inputs) -> list[str]:
    """Softmax."""
    return [_softmax(b, inputs[0])]


def _softmax(b: Builder, x: str) -> str:
    """Softmax over the last axis; over another one its formula, as ONNX Runtime's kernel would transpose twice."""
    axis, shape = b.attributes["axis"], b.shapes[0]
    if axis == -1 or shape is None or normalize_axis(axis, len(shape)) == len(shape) - 1:
        return b.call("Softmax", x, axis=axis)
    e = b.call("Exp", b.call("Sub", x, b.reduce("ReduceMax", x, [axis])))
    return b.call("Div", e, b.reduce("ReduceSum", e, [axis]))


def softmax_mask(b: Builder, inputs: Inputs) -> list[str]:
    """Masked entries become the lowest finite number: unlike -inf it makes a row with all of them masked uniform.

    A mask smaller than x becomes an upper limit of x (infinite where kept): Min broadcasts faster than Where.
    """
    x, mask = inputs
    lowest = b.lowest()
    smaller = b.shapes[1] is not None and b.shapes[0] is not None and b.shapes[1] != b.shapes[0]
    kept = b.scalar(math.inf, "infinity") if smaller else x
    limit = b.call("Where", mask, *((lowest, kept) if b.attributes["mask_value"] else (kept, lowest)))
    return [_softmax(b, b.call("Min", x, limit) if smaller else limit)]


def window(b: Builder, inputs: Inputs) -> list[str]:
    """Reshape, Transpose, Reshape."""
    (wh, ww), (nh, nw), mode = (b.attributes[name] for name in ("window_sizes", "num_windows", "mode"))
    inner, order = {
        "partition": ((nh, wh, nw, ww), (0, 1, 2, 4, 3, 5)),
        "reverse": ((nh, nw, wh, ww), (0, 1, 2, 4, 3, 5)),
        "partition_num_first": ((wh, nh, ww, nw), (0, 1, 3, 5, 2, 4)),
    }[mode]
    outer = (nh * wh, nw * ww) if mode == "reverse" else (nh * nw, wh * ww)
    parts = b.transpose(b.reshape(inputs[0], (0, 0, *inner)), *order)
    return [b.reshape(parts, (0, 0, *outer))]
