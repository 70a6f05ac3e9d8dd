"""Normalisations as ONNX and ONNX Runtime operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import TensorProto

from custom_ops.lowering.builder import Builder
from custom_ops.shapes import Shape, normalize_axes

Inputs = list[str]


@dataclass(frozen=True)
class _Axes:
    """The normalised axes of an input whose shape is known well enough for LayerNormalization."""

    rank: int
    axes: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def perm(self) -> tuple[int, ...]:
        """The permutation that moves the axes to the end."""
        return (*(i for i in range(self.rank) if i not in self.axes), *self.axes)

    @property
    def last(self) -> bool:
        """Whether the axes are at the end already."""
        return self.perm == tuple(range(self.rank))

    def covers(self, shape: Shape | None) -> bool:
        """Whether a weight varies along these axes only, and along all of them."""
        if shape is None or len(shape) > self.rank:
            return False
        aligned = (*(1,) * (self.rank - len(shape)), *shape)
        size = dict(zip(self.axes, self.size))
        return all(d == size.get(i, 1) for i, d in enumerate(aligned))


def _axes_of(shape: Shape | None, axes: Sequence[int]) -> _Axes | None:
    if shape is None:
        return None
    found = list(normalize_axes(axes, len(shape)))
    # Axes of size 1 behind the last one change no mean, and with them no transposition is needed.
    behind = range(found[-1] + 1, len(shape))
    if all(shape[i] == 1 for i in behind):
        found.extend(behind)
    size = tuple(shape[i] for i in found)
    if not all(isinstance(d, int) and d > 0 for d in size):
        return None
    return _Axes(len(shape), tuple(found), size)  # type: ignore[arg-type]


def _affine(b: Builder, y: str, weight: str, bias: str) -> str:
    y = b.call("Mul", y, weight) if weight else y
    return b.call("Add", y, bias) if bias else y


def _kernel(b: Builder, inputs: Inputs, axes: _Axes, mode: str) -> str:
    """One kernel of ONNX Runtime, with transpositions where the axes are not the last ones."""
    x, weight, bias = (*inputs, "", "")[:3]
    eps, size, gain = b.attributes["eps"], list(axes.size), 1.0
    if mode == "pixel":  # x / sqrt(sum + eps) is x / sqrt(mean + eps / n) / sqrt(n)
        count = math.prod(size)
        eps, gain = eps / count, count**-0.5
    rms = mode in ("rms", "pixel")
    if not axes.last:
        x = b.transpose(x, *axes.perm)
    scale, shift = "", ""
    if weight and gain == 1 and axes.covers(b.shapes[1]):
        scale, weight = b.reshape(weight, size), ""
    if bias and not rms and not weight and axes.covers(b.shapes[2]):
        shift, bias = b.reshape(bias, size), ""
    op_type = "SimplifiedLayerNormalization" if rms else "LayerNormalization"
    ports = [x, scale or b.fill(size, gain, "scale"), *([shift] if shift else [])]
    y = b.call(op_type, *ports, axis=-len(size), epsilon=eps)
    if not axes.last:
        y = b.transpose(y, *(axes.perm.index(i) for i in range(axes.rank)))
    return _affine(b, y, weight, bias)


def _instance(b: Builder, inputs: Inputs, channels: int) -> str:
    """InstanceNormalization: all axes behind the channels."""
    one, zero = b.fill([channels], 1, "scale"), b.fill([channels], 0, "shift")
    return b.call("InstanceNormalization", inputs[0], one, zero, epsilon=b.attributes["eps"])


def _decomposed(b: Builder, inputs: Inputs, axes: Sequence[int], mode: str, reduce: Callable[[str, bool], str]) -> str:
    """The formula; ``reduce(x, mean)`` sums ``x`` or takes its mean over the axes, which keep size 1."""
    x = inputs[0]
    if mode in ("layer", "mean_var"):
        x = b.call("Sub", x, reduce(x, True))
    total = reduce(b.call("Mul", x, x), mode not in ("l2", "pixel"))
    if mode == "l2":
        length = b.call("Clip", b.call("Sqrt", total), b.scalar(b.attributes["eps"], "eps"))
    else:
        length = b.call("Sqrt", b.call("Add", total, b.scalar(b.attributes["eps"], "eps")))
    return b.call("Mul", x, b.call("Reciprocal", length))


def _as_product(b: Builder, inputs: Inputs, axes: Sequence[int], mode: str) -> str:
    """The formula over axis 1 of a single image, sums as matrix products with a row of ones: the fastest there."""
    shape = b.shapes[0]
    assert shape is not None
    count = shape[1]
    assert isinstance(count, int)

    def reduce(x: str, mean: bool) -> str:
        return b.call("MatMul", b.fill([1, count], 1 / count if mean else 1, "ones"), x)

    flat = b.reshape(inputs[0], (0, 0, -1))
    y = _decomposed(b, [flat], axes, mode, reduce)
    return b.reshape(y, (0, 0, *shape[2:]))  # type: ignore[arg-type]


def _choose(b: Builder, axes: Sequence[int], mode: str, plain: bool) -> str:
    """Which form runs fastest, ``plain`` without weights, as ``benchmarks/ops.py`` measures."""
    shape = b.shapes[0]
    known = _axes_of(shape, axes)
    layer, rms = mode in ("layer", "mean_var"), mode == "rms"
    if shape is None or known is None:
        return "decomposed"
    if known.last:
        spatial = len(shape) > 2 and known.axes == tuple(range(2, len(shape))) and isinstance(shape[1], int)
        if layer and spatial and plain and b.element_type == TensorProto.FLOAT:
            return "instance"
        return "decomposed" if mode == "l2" else "kernel"
    rest = shape[2:]
    single = known.axes == (1,) and all(isinstance(d, int) for d in rest)
    places, channels = math.prod(d for d in rest if isinstance(d, int)), known.size[0]
    product = single and shape[0] == 1
    if layer or rms:
        if not single or b.after_transpose:
            return "kernel"
        if product:
            return "product" if places > 2 * channels else "kernel"
        return "decomposed" if 3 * places > channels else "kernel"
    return "product" if product else "decomposed"


def _normalize(b: Builder, inputs: Inputs, axes: Sequence[int], mode: str) -> list[str]:
    form, shape = _choose(b, axes, mode, not any(inputs[1:])), b.shapes[0]
    if form == "kernel":
        known = _axes_of(shape, axes)
        assert known is not None
        return [_kernel(b, inputs, known, mode)]
    if form == "instance":
        assert shape is not None
        assert isinstance(shape[1], int)
        return [_instance(b, inputs, shape[1])]
    if form == "product":
        y = _as_product(b, inputs, axes, mode)
    else:
        y = _decomposed(b, inputs, axes, mode, lambda x, mean: b.reduce("ReduceMean" if mean else "ReduceSum", x, axes))
    return [_affine(b, y, *(*inputs[1:], "", "")[:2])]


def norm(b: Builder, inputs: Inputs) -> list[str]:
    """exNorm in its five modes."""
    return _normalize(b, inputs, b.attributes["axes"], b.attributes["mode"])


def rms_norm(b: Builder, inputs: Inputs) -> list[str]:
    """exRMSNorm: the last axis."""
    return _normalize(b, inputs, (-1,), "rms")


def layer_norm(b: Builder, inputs: Inputs) -> list[str]:
    """exLayerNorm: the last axes."""
    return _normalize(b, inputs, range(-len(b.attributes["normalized_shape"]), 0), "layer")


def mean_variance_normalization(b: Builder, inputs: Inputs) -> list[str]:
    """exMeanVarianceNormalization: the epsilon is inside the root, which the ONNX operator of this name has outside."""
    return _normalize(b, inputs, b.attributes["axes"], "layer")


def lrn(b: Builder, inputs: Inputs) -> list[str]:
    """exLRN: the sum over a window as an average over it times its area."""
    x, size, bias, beta = inputs[0], b.attributes["size"], b.attributes["bias"], b.attributes["beta"]
    alpha, reach = b.attributes["alpha"], size // 2
    square = b.call("Mul", x, x)
    mean = b.in_float32(
        lambda value: b.call("AveragePool", value, kernel_shape=[size, size], pads=[reach] * 4, count_include_pad=1),
        square,
    )
    base = b.call("Add", b.call("Mul", mean, b.scalar(alpha * size, "alpha")), b.scalar(bias, "bias"))
    if bias > 0 and alpha >= 0:  # then the logarithm exists, and is faster than Pow
        power = b.call("Exp", b.call("Mul", b.call("Log", base), b.scalar(-beta, "beta")))
    else:
        power = b.call("Pow", base, b.scalar(-beta, "beta"))
    return [b.call("Mul", x, power)]
