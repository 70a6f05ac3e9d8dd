"""Metrics of a tensor against its reference."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ort_rknpu.compare.metrics import Accumulator, half_ulps, measure


def test_equal_tensors_have_no_error() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = measure(x, x.copy())
    assert found.cosine == pytest.approx(1, abs=1e-12)
    assert (found.max_abs, found.max_rel, found.sqnr_db, found.elements) == (0, 0, math.inf, 12)


def test_sqnr_is_signal_power_over_noise_power_in_decibel() -> None:
    assert measure(np.full(4, 10.0), np.full(4, 11.0)).sqnr_db == pytest.approx(20)


def test_relative_error_is_against_one_plus_the_reference() -> None:
    assert measure(np.array([0.0, 9.0]), np.array([0.5, 10.0])).max_rel == pytest.approx(0.5)


def test_batches_add_up_to_the_metrics_of_all_values() -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((6, 5))
    actual = reference + rng.standard_normal((6, 5)) * 1e-3
    accumulator = Accumulator()
    for rows in (slice(0, 2), slice(2, 6)):
        accumulator.add(reference[rows], actual[rows])
    whole, parts = measure(reference, actual), accumulator.result()
    assert parts.elements == whole.elements
    assert parts.sqnr_db == pytest.approx(whole.sqnr_db)
    assert parts.max_abs == whole.max_abs


def test_overflow_nan_and_subnormal_values_are_counted_and_leave_the_ratio_finite() -> None:
    reference = np.array([1.0, 70000.0, 2.0, 1e-6, np.inf], np.float32)
    actual = np.array([1.5, np.inf, np.nan, 1e-6, np.inf], np.float32)
    found = measure(reference, actual)
    assert (found.overflows, found.nans, found.subnormals) == (1, 1, 1)
    assert found.max_abs == math.inf
    assert math.isfinite(found.sqnr_db)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["max_abs"] == "inf"


def test_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        measure(np.zeros((2, 3)), np.zeros((3, 2)))


def test_half_ulps_counts_float16_steps_across_zero_and_into_infinity() -> None:
    steps = half_ulps(
        np.array([1.0, 0.0, -0.0, 65504.0, 6e-8]), np.array([np.nextafter(np.float16(1), 2), -6e-8, 0.0, 1e6, -6e-8])
    )
    assert steps.tolist() == [1, 1, 0, 1, 2]
