"""Every operator in numpy: what each computes, in a numerically stable form, float32 and float64 for ex*."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from custom_ops import elementwise, recurrent
from custom_ops.backend_contracts import OPERATORS
from custom_ops.errors import OpError
from custom_ops.shapes import infer_shapes, normalize_axes, text

Array = npt.NDArray[Any]
Arguments = Sequence[Array | None]
Function = Callable[[Arguments, Mapping[str, Any]], Sequence[Array]]

_erf64 = np.frompyfunc(math.erf, 1, 1)
_BESIDE_T = {"bool": np.dtype(np.bool_), "int32": np.dtype(np.int32)}


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    result = x * x.dtype.type(coefficients[0])
    for coefficient in coefficients[1:-1]:
        result += x.dtype.type(coefficient)
        result *= x
    result += x.dtype.type(coefficients[-1])
    return result


def erf(x: Array) -> Array:
    """The error function: within 1.5 units in the last place for float32, exact as ``math.erf`` for float64.

    float32 uses minimax polynomials: odd below 0.9277, one minus an exponential above.
    """
    if x.dtype != np.float32:
        return np.asarray(_erf64(x), x.dtype)
    t = np.minimum(np.abs(x), np.float32(4))
    result = _horner(
        (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1),
        t,
    )
    result *= t
    result -= t
    result = np.asarray(np.exp(result))
    np.subtract(1, result, out=result)
    result = np.asarray(np.copysign(result, x))
    near = _horner((-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1), t * t)
    near *= x
    near += x
    np.copyto(result, near, where=~(t > np.float32(0.927734375)))
    return result


def _gate(numerator: Array, z: Array) -> Array:
    """``numerator * sigmoid(z)``; ``z`` is overwritten. An exponential that overflows gives the right limit, 0."""
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1
    return np.divide(numerator, z, out=z)


def _swish(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    return [_gate(x, np.asarray(x * x.dtype.type(attributes["beta"])))]


def _mish(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    # tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2); it is 1 to the last place long before e^2 overflows.
    (x,) = _present(arguments)
    e = np.exp(np.minimum(x, 40))
    n = e * (e + 2)
    return [np.asarray(x * (n / (n + 2)))]


def _gelu(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    half = x.dtype.type(0.5)
    return [np.asarray(half * x * (1 + erf(x * x.dtype.type(math.sqrt(0.5)))))]


def _hard_swish(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    return [np.asarray(x * np.clip(x / 6 + x.dtype.type(0.5), 0, 1))]


def _swoosh(shift: float, offset: float) -> Function:
    def compute(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
        (x,) = _present(arguments)
        z = x - x.dtype.type(shift)
        softplus = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))
        return [np.asarray(softplus - x.dtype.type(0.08) * x - x.dtype.type(offset))]

    return compute


def _glu(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    value, gate = np.split(x, 2, attributes["axis"])
    return [_gate(value, np.array(gate))]


def _softmax_of(x: Array, axis: int) -> Array:
    e = x - x.max(axis, keepdims=True, initial=-np.inf)
    np.exp(e, out=e)
    e /= e.sum(axis, keepdims=True)
    return e


def _softmax(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    return [_softmax_of(x, attributes["axis"])]


def _softmax_mask(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    x, mask = _present(arguments)
    axis = attributes["axis"]
    keep = mask != bool(attributes["mask_value"])
    e = np.where(keep, x, x.dtype.type(-np.inf))
    empty = ~np.broadcast_to(keep, x.shape).any(axis, keepdims=True)
    if empty.any():
        # A row with every entry masked is uniform, as if all entries were equal.
        e = np.where(empty, x.dtype.type(0), e)
    return [_softmax_of(e, axis)]


def _affine(y: Array, extra: Sequence[Array | None]) -> list[Array]:
    for operation, operand in zip((np.multiply, np.add), extra):
        if operand is not None:
            y = operation(y, operand, out=y)
    return [y]


def _normalize(x: Array, axes: tuple[int, ...], eps: float, mode: str) -> Array:
    epsilon = x.dtype.type(eps)
    if mode in ("layer", "mean_var"):
        x = x - x.mean(axes, keepdims=True)
    power = np.square(x)
    if mode == "l2":
        return x / np.maximum(np.sqrt(power.sum(axes, keepdims=True)), epsilon)
    total = power.sum(axes, keepdims=True) if mode == "pixel" else power.mean(axes, keepdims=True)
    return x / np.sqrt(total + epsilon)


def _norm(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    x = arguments[0]
    assert x is not None
    axes = normalize_axes(attributes["axes"], x.ndim)
    return _affine(_normalize(x, axes, attributes["eps"], attributes.get("mode", "layer")), arguments[1:])


def _rms_norm(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    return _norm(arguments, {"axes": (-1,), "eps": attributes["eps"], "mode": "rms"})


def _layer_norm(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    axes = tuple(range(-len(attributes["normalized_shape"]), 0))
    return _norm(arguments, {"axes": axes, "eps": attributes["eps"]})


def _sliding_sum(x: Array, size: int, axis: int) -> Array:
    parts = np.moveaxis(x, axis, 0)
    count = len(parts) - size + 1
    total = parts[:count].copy()
    for start in range(1, size):
        total += parts[start : start + count]
    return np.moveaxis(total, 0, axis)


def _lrn(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    size, kind = attributes["size"], x.dtype.type
    reach = size // 2
    square = np.pad(np.square(x), ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    windows = _sliding_sum(_sliding_sum(square, size, 2), size, 3)
    total = kind(attributes["bias"]) + kind(attributes["alpha"] / size) * windows
    return [np.asarray(x / total ** kind(attributes["beta"]))]


def _matmul(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    a, b, c = arguments
    assert a is not None
    assert b is not None
    y = np.matmul(a[:, :, 0].swapaxes(1, 2), b[:, :, 0])[:, :, None]
    if c is not None:
        y = y * c if attributes["c_type"] == "mul" else y + c
    return [y]


def _attention(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    q, k, v = _present(arguments[:3])
    mask = arguments[3]
    scores = np.matmul(q[:, :, 0].swapaxes(1, 2), k[:, :, 0])
    scores *= q.dtype.type(attributes["scale"])
    if mask is not None:
        scores += np.reshape(mask, (1,) * (4 - mask.ndim) + mask.shape)[:, :, 0].swapaxes(1, 2)
    return [np.matmul(v[:, :, 0], _softmax_of(scores, 2).swapaxes(1, 2))[:, :, None]]


def _window(arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    (x,) = _present(arguments)
    (wh, ww), (nh, nw), mode = attributes["window_sizes"], attributes["num_windows"], attributes["mode"]
    inner, order = {
        "partition": ((nh, wh, nw, ww), (0, 1, 2, 4, 3, 5)),
        "reverse": ((nh, nw, wh, ww), (0, 1, 2, 4, 3, 5)),
        "partition_num_first": ((wh, nh, ww, nw), (0, 1, 3, 5, 2, 4)),
    }[mode]
    outer = (nh * wh, nw * ww) if mode == "reverse" else (nh * nw, wh * ww)
    return [x.reshape(*x.shape[:2], *inner).transpose(order).reshape(*x.shape[:2], *outer)]


def _present(arguments: Arguments) -> list[Array]:
    return [a for a in arguments if a is not None]


_FUNCTIONS: dict[str, Function] = {
    "exSwish": _swish,
    "exMish": _mish,
    "exGelu": _gelu,
    "exGlu": _glu,
    "exSoftmax13": _softmax,
    "exSoftmaxMask": _softmax_mask,
    "exNorm": _norm,
    "exMatMul": _matmul,
    "exSDPAttention": _attention,
    "exWindow": _window,
    "exLSTM": recurrent.lstm,
    "exGRU": recurrent.gru,
    "exHardSwish": _hard_swish,
    "exRMSNorm": _rms_norm,
    "exLayerNorm": _layer_norm,
    "exMeanVarianceNormalization": _norm,
    "exLRN": _lrn,
    "exSwooshR": _swoosh(1, 0.313261687),
    "exSwooshL": _swoosh(4, 0.035),
    **elementwise.FUNCTIONS,
}


def compute(op_type: str, arguments: Arguments, attributes: Mapping[str, Any]) -> list[Array]:
    """All outputs of the contract.

    Args:
        op_type: a name in ``OPERATORS``.
        arguments: one array of a type in ``computed_types`` (bool, int32 where the contract says so) per input of the
            contract, None for an omitted one; trailing ones may be left out. They are not written to.
        attributes: as :func:`custom_ops.checks.resolve_attributes` returns them.

    Raises:
        OpError: dtypes or shapes break the contract.
    """
    contract = OPERATORS[op_type]
    ports = contract.inputs
    padded = [*arguments, *[None] * (len(ports) - len(arguments))]
    kind = None if padded[0] is None else padded[0].dtype
    for port, array in zip(ports, padded):
        if array is None and not port.optional:
            raise OpError(f"required input {port.name} is missing")
        wanted = _BESIDE_T.get(port.type, kind)
        if array is not None and array.dtype != wanted:
            raise OpError(f"input {port.name} must be {wanted}, not {array.dtype}")
    if kind is None or kind.name not in contract.computed_types:
        raise OpError(f"input {ports[0].name} must be {' or '.join(contract.computed_types)}, not {kind}")
    shapes = infer_shapes(op_type, [None if a is None else a.shape for a in padded], attributes)
    with np.errstate(all="ignore"):
        results = _FUNCTIONS[op_type](padded, attributes)
    for array, shape in zip(results, shapes):
        if array.shape != shape:
            raise OpError(f"inputs give an output of shape {list(array.shape)}, not {text(shape)}")
    return list(results)
