"""Activations, gates, softmax and windows as ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from custom_ops.lowering.builder import Builder
from custom_ops.shapes import normalize_axis

Inputs = list[str]


def swish(b: Builder, inputs: Inputs) -> list[str]:
    """Sigmoid and Mul, which ONNX Runtime fuses."""
    x, beta = inputs[0], b.attributes["beta"]
    scaled = x if beta == 1 else b.call("Mul", x, b.scalar(beta, "beta"))
    return [b.call("Mul", x, b.call("Sigmoid", scaled))]


def _softplus(b: Builder, x: str) -> str:
    return b.in_float32(lambda value: b.call("Softplus", value), x)


def mish(b: Builder, inputs: Inputs) -> list[str]:
    """Softplus, Tanh, Mul: what the ONNX operator Mish expands to."""
    return [b.call("Mul", inputs[0], b.call("Tanh", _softplus(b, inputs[0])))]


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
    """softplus(x - shift) - 0.08 x - offset."""

    def lower(b: Builder, inputs: Inputs) -> list[str]:
        softplus = _softplus(b, b.call("Sub", inputs[0], b.scalar(shift, "shift")))
        rest = b.call("Sub", softplus, b.call("Mul", inputs[0], b.scalar(0.08, "slope")))
        return [b.call("Sub", rest, b.scalar(offset, "offset"))]

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
    """Softmax, which means a single axis since opset 13."""
    return [b.call("Softmax", inputs[0], axis=b.attributes["axis"])]


def softmax_mask(b: Builder, inputs: Inputs) -> list[str]:
    """Where and Softmax; the lowest finite number as fill makes a row with every entry masked uniform, not NaN."""
    x, mask = inputs
    lowest = b.scalar(float(np.finfo(np.float32).min), "lowest")
    masked = b.call("Where", mask, lowest, x) if b.attributes["mask_value"] else b.call("Where", mask, x, lowest)
    return [b.call("Softmax", masked, axis=b.attributes["axis"])]


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
