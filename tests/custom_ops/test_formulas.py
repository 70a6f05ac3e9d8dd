"""Operators and forms without a golden case, against their formula in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from custom_ops.rewrite import Ops
from tests.custom_ops.models import one_node, run

BOTH = pytest.mark.parametrize("ops", ["native", "python"])


def close(value: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.max(np.abs(value - expected) / (1 + np.abs(expected))) < 1e-5)


@BOTH
@pytest.mark.parametrize(("op_type", "shift", "offset"), [("exSwooshR", 1, 0.313261687), ("exSwooshL", 4, 0.035)])
def test_swoosh_is_stable_for_large_numbers(op_type: str, shift: float, offset: float, ops: Ops) -> None:
    x = np.concatenate([np.linspace(-30, 30, 601), [-1e30, -1e4, -100, 88, 89, 100, 1e4, 1e30]]).astype(np.float32)
    z = x.astype(np.float64) - shift
    expected = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - 0.08 * x.astype(np.float64) - offset
    (y,) = run(one_node(op_type, {"x": x}), {"x": x}, ops)
    assert close(y, expected)


@BOTH
def test_mish_is_stable_for_large_numbers(ops: Ops) -> None:
    x = np.concatenate([np.linspace(-30, 30, 601), [-1e30, -100, 88, 89, 100, 1e4, 1e30]]).astype(np.float32)
    expected = [v * math.tanh(max(v, 0) + math.log1p(math.exp(-abs(v)))) for v in x.astype(np.float64)]
    (y,) = run(one_node("exMish", {"x": x}), {"x": x}, ops)
    assert close(y, np.array(expected))


@BOTH
def test_gelu_is_the_erf_form(ops: Ops) -> None:
    x = np.linspace(-6, 6, 1201).astype(np.float32)
    expected = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(np.float64)]
    (y,) = run(one_node("exGelu", {"x": x}), {"x": x}, ops)
    assert np.max(np.abs(y - expected)) < 1e-6


@BOTH
@pytest.mark.parametrize("shape", [(2, 7, 1, 5), (1, 7, 1, 5), (2, 7, 1, 1), (1, 1, 1, 5), (7, 1, 5)])
def test_attention_adds_a_run_time_mask_after_scaling(shape: tuple[int, ...], ops: Ops) -> None:
    rng = np.random.default_rng(0)
    arrays = {"q": (2, 8, 1, 5), "k": (2, 8, 1, 7), "v": (2, 4, 1, 7), "mask": shape}
    feeds = {name: rng.standard_normal(dims).astype(np.float32) for name, dims in arrays.items()}
    q, k, v, mask = (a.astype(np.float64) for a in feeds.values())
    scores = np.einsum("bdiq,bdik->bkiq", q, k) * 0.3 + mask
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = np.einsum("bvik,bkiq->bviq", v, weights)
    (y,) = run(one_node("exSDPAttention", feeds, {"scale": 0.3}), feeds, ops)
    assert close(y, expected)


@BOTH
@pytest.mark.parametrize("mask_value", [0, 1])
def test_softmax_mask_is_uniform_where_everything_is_masked_and_zero_where_an_entry_is(
    mask_value: int, ops: Ops
) -> None:
    x = np.array([[[3.0, -1e4, 2.0, 60000.0], [1.0, 2.0, 3.0, 4.0]]], np.float32)
    dropped = np.array([[[False, False, True, True], [True, True, True, True]]])
    feeds = {"x": x, "mask": dropped if mask_value else ~dropped}
    model = one_node("exSoftmaxMask", feeds, {"axis": -1, "mask_value": mask_value})
    (y,) = run(model, feeds, ops)
    assert y.tolist() == [[[1.0, 0.0, 0.0, 0.0], [0.25] * 4]]


@BOTH
def test_softmax_mask_takes_a_mask_smaller_than_its_input(ops: Ops) -> None:
    x = np.array([[[3.0, 1.0, np.inf], [1.0, 2.0, 3.0]]], np.float32)
    feeds = {"x": x, "mask": np.array([False, True, True])}
    (y,) = run(one_node("exSoftmaxMask", feeds, {"axis": 2, "mask_value": 1}), feeds, ops)
    assert y.tolist() == [[[1.0, 0.0, 0.0]] * 2]


@BOTH
@pytest.mark.parametrize(("beta", "alpha", "bias"), [(1.0, 0.5, -3.0), (2.0, -0.5, 1.0)])
def test_lrn_with_a_base_that_has_no_logarithm(beta: float, alpha: float, bias: float, ops: Ops) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32)
    attributes = {"size": 3, "alpha": alpha, "beta": beta, "bias": bias}
    padded = np.pad(x.astype(np.float64) ** 2, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = sum(padded[:, :, i : i + 5, j : j + 5] for i in range(3) for j in range(3))
    expected = x / (bias + alpha / 3 * total) ** beta
    (y,) = run(one_node("exLRN", {"x": x}, attributes), {"x": x}, ops)
    assert np.max(np.abs(y - expected) / (1 + np.abs(expected))) < 1e-4
