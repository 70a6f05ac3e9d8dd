"""Normalisations as ONNX and ONNX Runtime operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def _kernel(b: Builder, inputs: Inputs, axes: _Axes, eps: float, rms: bool) -> str:
    """LayerNormalization, or SimplifiedLayerNormalization for rms, with transpositions where needed."""
    x, weight, bias = (*inputs, "", "")[:3]
    size = list(axes.size)
    inverse = [axes.perm.index(i) for i in range(axes.rank)]
    if not axes.last:
        x = b.transpose(x, *axes.perm)
    scale = ""
    if weight and axes.covers(b.shapes[1]):
        scale, weight = b.reshape(weight, size), ""
    shift = ""
    if bias and not rms and not weight and axes.covers(b.shapes[2]):
        shift, bias = b.reshape(bias, size), ""
    op_type = "SimplifiedLayerNormalization" if rms else "LayerNormalization"
    ports = [x, scale or b.fill(size, 1, "ones"), *([shift] if shift else [])]
    y = b.call(op_type, *ports, axis=-len(size), epsilon=eps)
    if not axes.last:
        y = b.transpose(y, *inverse)
    return _affine(b, y, weight, bias)


def _centered(b: Builder, x: str, axes: Sequence[int]) -> str:
    return b.call("Sub", x, b.reduce("ReduceMean", x, axes))


def _normalize(b: Builder, inputs: Inputs, axes: Sequence[int], mode: str) -> list[str]:
    x, weight, bias = (*inputs, "", "")[:3]
    eps = b.attributes["eps"]
    if mode in ("layer", "mean_var", "rms"):
        known = _axes_of(b.shapes[0], axes)
        if known is not None:
            return [_kernel(b, inputs, known, eps, mode == "rms")]
    if mode == "l2":
        length = b.call("Max", b.reduce("ReduceL2", x, axes), b.scalar(eps, "eps"))
    else:
        if mode != "rms":
            x = _centered(b, x, axes) if mode != "pixel" else x
        total = b.reduce("ReduceSum" if mode == "pixel" else "ReduceMean", b.call("Mul", x, x), axes)
        length = b.call("Sqrt", b.call("Add", total, b.scalar(eps, "eps")))
    return [_affine(b, b.call("Div", x, length), weight, bias)]


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
    x, size, alpha = inputs[0], b.attributes["size"], b.attributes["alpha"]
    reach = size // 2
    square = b.call("Mul", x, x)
    mean = b.in_float32(
        lambda value: b.call("AveragePool", value, kernel_shape=[size, size], pads=[reach] * 4, count_include_pad=1),
        square,
    )
    base = b.call("Add", b.call("Mul", mean, b.scalar(alpha * size, "alpha")), b.scalar(b.attributes["bias"], "bias"))
    return [b.call("Div", x, b.call("Pow", base, b.scalar(b.attributes["beta"], "beta")))]
