"""Native and Python form of every operator agree, whatever the shapes, options and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from custom_ops.contracts import CONTRACTS
from tests.custom_ops.models import one_node, run

Draw = Callable[[st.SearchStrategy[Any]], Any]
Arguments = dict[str, np.ndarray | None]
TOLERANCE = 1e-5


def array(draw: Draw, shape: tuple[int, ...], dtype: Any = np.float32, scale: float | None = None) -> np.ndarray:
    """Normal numbers of a drawn scale, some places taken by extreme ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    wide = scale is None
    result = rng.standard_normal(shape) * (draw(st.sampled_from([1e-3, 1.0, 8.0, 300.0])) if wide else scale)
    if wide and draw(st.booleans()):
        extreme = np.array([0.0, -0.0, 88.8, -88.8, 1e4, -1e4, 65504.0, -65504.0, 1e-30])
        result = np.where(rng.random(shape) < 0.2, rng.choice(extreme, shape), result)
    return np.asarray(result, dtype)


def dims(draw: Draw, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))


def optional(draw: Draw, value: np.ndarray) -> np.ndarray | None:
    return value if draw(st.booleans()) else None


def broadcast(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``shape``."""
    kept = tuple(d if draw(st.booleans()) else 1 for d in shape)
    return kept[draw(st.integers(0, len(kept) - 1)) :]


def elementwise(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    return {"x": array(draw, dims(draw, draw(st.integers(0, 5))), dtype)}, {}


def swish(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    beta = draw(st.sampled_from([None, 0.0, 0.5, 1.0, 1.702, -1.0]))
    return elementwise(draw, dtype)[0], {} if beta is None else {"beta": beta}


def glu(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 4)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    # ONNX Runtime's Sigmoid is exact to 1e-8 absolutely, not relatively: a huge value would show that, not our form.
    value = array(draw, shape, dtype, 8.0)
    return {"x": np.concatenate([value, array(draw, shape, dtype)], axis)}, {"axis": axis}


def softmax(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 4)))
    axis = draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    return {"x": array(draw, shape, dtype)}, {} if axis is None else {"axis": axis}


def softmax_mask(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 4)))
    mask = np.random.default_rng(draw(st.integers(0, 99))).random(broadcast(draw, shape)) < draw(st.floats(0, 1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return {"x": array(draw, shape, dtype), "mask": mask}, {"axis": axis, "mask_value": draw(st.integers(0, 1))}


def norm(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(2, 5)), 1, 9)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    attributes: dict[str, Any] = {"mode": draw(st.sampled_from(["layer", "mean_var", "rms", "l2", "pixel"]))}
    if draw(st.booleans()):
        attributes["axes"] = axes
    if draw(st.booleans()):
        attributes["eps"] = draw(st.sampled_from([1e-6, 1e-3, 0.1, 8.0]))
    per_axis = tuple(d if i in attributes.get("axes", [1]) else 1 for i, d in enumerate(shape))
    w_shape = per_axis if draw(st.booleans()) else broadcast(draw, shape)
    w = optional(draw, array(draw, w_shape, dtype, 1.0))
    b = None if w is None else optional(draw, array(draw, w_shape, dtype, 1.0))
    # float32 cannot tell what remains of equal numbers minus their mean; a wide scale is for the other operators.
    return {"x": array(draw, shape, dtype, draw(st.sampled_from([0.1, 1.0, 50.0]))), "w": w, "b": b}, attributes


def rms_norm(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 4)), 1, 9)
    return {"x": array(draw, shape, dtype, 1.0), "w": array(draw, broadcast(draw, shape), dtype, 1.0)}, {}


def layer_norm(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 4)), 2, 9)
    tail = shape[draw(st.integers(0, len(shape) - 1)) :]
    arguments: Arguments = {"x": array(draw, shape, dtype, 1.0)}
    arguments |= {key: array(draw, broadcast(draw, tail), dtype, 1.0) for key in "wb"}
    return arguments, {"normalized_shape": list(tail), "eps": 0.01}


def mean_variance(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    shape = dims(draw, draw(st.integers(1, 5)), 2, 7)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    return {"x": array(draw, shape, dtype, 1.0)}, {"axes": axes, "eps": 0.01}


def lrn(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    attributes = {
        "size": draw(st.sampled_from([1, 3, 5, 7])),
        "alpha": draw(st.sampled_from([0.0, 1e-4, 0.5])),
        "beta": draw(st.sampled_from([0.5, 0.75, 1.0])),
        "bias": draw(st.sampled_from([0.5, 1.0, 2.0])),
    }
    return {"x": array(draw, dims(draw, 4), dtype, 3.0)}, attributes


def matmul(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    b, k, n, m = dims(draw, 4)
    a_batch, b_batch = draw(st.sampled_from([(b, b), (1, b), (b, 1)]))
    arguments: Arguments = {
        "a": array(draw, (a_batch, k, 1, n), dtype, 1.0),
        "b": array(draw, (b_batch, k, 1, m), dtype, 1.0),
        "c": optional(draw, array(draw, broadcast(draw, (b, n, 1, m)), dtype, 1.0)),
    }
    kind = draw(st.sampled_from([None, "add", "mul"]))
    return arguments, {} if kind is None else {"c_type": kind}


def attention(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    b, d, q, k = dims(draw, 4)
    v = draw(st.integers(1, 6))
    arguments: Arguments = {
        "q": array(draw, (b, d, 1, q), dtype, 1.0),
        "k": array(draw, (b, d, 1, k), dtype, 1.0),
        "v": array(draw, (b, v, 1, k), dtype, 1.0),
        "mask": optional(draw, array(draw, broadcast(draw, (b, k, 1, q)), dtype)),
    }
    scale = draw(st.sampled_from([None, 1.0, 0.125]))
    return arguments, {} if scale is None else {"scale": scale}


def window(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
    b, c = dims(draw, 2)
    wh, ww, nh, nw = dims(draw, 4, 1, 4)
    mode = draw(st.sampled_from(["partition", "reverse", "partition_num_first"]))
    whole = (nh * nw, wh * ww) if mode == "reverse" else (nh * wh, nw * ww)
    return {"x": array(draw, (b, c, *whole), dtype)}, {
        "mode": mode,
        "window_sizes": [wh, ww],
        "num_windows": [nh, nw],
    }


def recurrent(gates: int) -> Callable[[Draw, Any], tuple[Arguments, dict[str, Any]]]:
    def make(draw: Draw, dtype: Any) -> tuple[Arguments, dict[str, Any]]:
        s, n, i, h = dims(draw, 4, 1, 4)
        direction = draw(st.sampled_from([None, "forward", "reverse", "bidirectional"]))
        d = 2 if direction == "bidirectional" else 1
        flat = draw(st.booleans())
        attributes: dict[str, Any] = {
            "sequence_size": s,
            "batch_size": n,
            "hidden_size": h,
            "input_layout": "(sn)c" if flat else "snc",
            "output_layout": draw(st.sampled_from(["snc", "sbnc", "(sn)c"])),
        }
        if direction is not None:
            attributes["direction"] = direction
        if gates == 3 and draw(st.booleans()):
            attributes["linear_before_reset"] = draw(st.integers(0, 1))
        lengths = np.random.default_rng(draw(st.integers(0, 99))).integers(1, s + 1, n).astype(np.int32)
        arguments: Arguments = {
            "x": array(draw, (s * n, i, 1, 1) if flat else (s, n, i), dtype, 1.0),
            "w": array(draw, (d, gates * h, i), dtype, 0.5),
            "r": array(draw, (d, gates * h, h), dtype, 0.5),
            "b": optional(draw, array(draw, (d, 2 * gates * h), dtype, 0.5)),
            "lengths": optional(draw, lengths),
            "h0": optional(draw, array(draw, (d, n, h), dtype, 0.5)),
        }
        if gates == 4:
            arguments["c0"] = optional(draw, array(draw, (d, n, h), dtype, 0.5))
        return arguments, attributes

    return make


MAKERS: dict[str, Callable[[Draw, Any], tuple[Arguments, dict[str, Any]]]] = {
    "exSwish": swish,
    "exMish": elementwise,
    "exGelu": elementwise,
    "exGlu": glu,
    "exSoftmax13": softmax,
    "exSoftmaxMask": softmax_mask,
    "exNorm": norm,
    "exMatMul": matmul,
    "exSDPAttention": attention,
    "exWindow": window,
    "exLSTM": recurrent(4),
    "exGRU": recurrent(3),
    "exHardSwish": elementwise,
    "exRMSNorm": rms_norm,
    "exLayerNorm": layer_norm,
    "exMeanVarianceNormalization": mean_variance,
    "exLRN": lrn,
    "exSwooshR": elementwise,
    "exSwooshL": elementwise,
}


def test_every_operator_has_a_property() -> None:
    assert MAKERS.keys() == CONTRACTS.keys()


@pytest.mark.parametrize("op_type", MAKERS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(data=st.data())
def test_native_and_python_agree(op_type: str, data: st.DataObject) -> None:
    draw = data.draw
    dtype = draw(st.sampled_from([np.float32, np.float32, np.float64]))
    arguments, attributes = MAKERS[op_type](draw, dtype)
    named = [key for key, value in arguments.items() if value is not None]
    constants = draw(st.lists(st.sampled_from(named[1:]), unique=True)) if named[1:] else []
    known = draw(st.booleans())
    dims_of = {} if known else {"x": tuple(f"d{i}" for i in range(arguments[named[0]].ndim))}  # type: ignore[union-attr]
    outputs = draw(st.integers(1, len(CONTRACTS[op_type].outputs)))
    model = one_node(op_type, arguments, attributes, constants=constants, outputs=outputs, dims=dims_of)
    native, python = run(model, arguments, "native"), run(model, arguments, "python")
    assert len(native) == len(python) == outputs
    for left, right in zip(native, python):
        assert left.shape == right.shape
        assert left.dtype == right.dtype == dtype
        assert np.isfinite(right).all()
        assert np.max(np.abs(left - right) / (1 + np.abs(right)), initial=0) < TOLERANCE
