"""How far one tensor is from another: cosine, errors, signal-to-noise ratio, overflows and subnormals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ort_rknpu.compare.numbers import json_value

_HALF_TINY = float(np.finfo(np.float16).tiny)


@dataclass(frozen=True)
class Metrics:
    """One tensor against its reference, over every batch that was measured.

    Attributes:
        elements: values compared.
        cosine: cosine similarity of both tensors read as vectors; 1 for two zero vectors.
        max_abs: largest ``|actual - reference|``; inf where only one side is finite.
        max_rel: largest ``|actual - reference| / (1 + |reference|)``.
        sqnr_db: ``10 log10(sum reference^2 / sum (actual - reference)^2)`` over values finite on both sides;
            inf where they are equal.
        overflows: values that are infinite although the reference is finite.
        nans: values that are NaN although the reference is not.
        subnormals: non-zero values below the smallest normal float16, 6.1e-5 in magnitude.
    """

    elements: int
    cosine: float
    max_abs: float
    max_rel: float
    sqnr_db: float
    overflows: int
    nans: int
    subnormals: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; an infinite or undefined number is a string, as JSON has none."""
        return json_value(asdict(self))


class Accumulator:
    """Collects pairs of tensors, one batch after another, into one :class:`Metrics`."""

    def __init__(self) -> None:
        self._elements = 0
        self._dot = self._reference_power = self._actual_power = self._noise = 0.0
        self._max_abs = self._max_rel = 0.0
        self._overflows = self._nans = self._subnormals = 0

    def add(self, reference: np.ndarray, actual: np.ndarray) -> None:
        """Adds one batch.

        Raises:
            ValueError: the shapes differ.
        """
        if reference.shape != actual.shape:
            raise ValueError(f"shapes differ: {reference.shape} against {actual.shape}")
        expected = np.asarray(reference, np.float64).ravel()
        found = np.asarray(actual, np.float64).ravel()
        self._elements += expected.size
        self._overflows += int(np.count_nonzero(np.isinf(found) & np.isfinite(expected)))
        self._nans += int(np.count_nonzero(np.isnan(found) & ~np.isnan(expected)))
        magnitude = np.abs(found)
        self._subnormals += int(np.count_nonzero((magnitude < _HALF_TINY) & (magnitude > 0)))
        finite = np.isfinite(expected) & np.isfinite(found)
        same = (expected == found) | (np.isnan(expected) & np.isnan(found))
        if not np.all(finite | same):
            self._max_abs = self._max_rel = math.inf
        if not finite.all():
            expected, found = expected[finite], found[finite]
        if expected.size == 0:
            return
        error = np.abs(found - expected)
        self._max_abs = max(self._max_abs, float(error.max()))
        self._max_rel = max(self._max_rel, float((error / (1 + np.abs(expected))).max()))
        self._dot += float(expected @ found)
        self._reference_power += float(expected @ expected)
        self._actual_power += float(found @ found)
        self._noise += float(error @ error)

    def result(self) -> Metrics:
        """What was measured so far."""
        norms = math.sqrt(self._reference_power) * math.sqrt(self._actual_power)
        if norms > 0:
            cosine = min(1.0, max(-1.0, self._dot / norms))
        else:
            cosine = 1.0 if self._reference_power == self._actual_power else 0.0
        if self._noise == 0:
            sqnr = math.inf
        else:
            sqnr = 10 * math.log10(self._reference_power / self._noise) if self._reference_power > 0 else -math.inf
        return Metrics(
            self._elements,
            cosine,
            self._max_abs,
            self._max_rel,
            sqnr,
            self._overflows,
            self._nans,
            self._subnormals,
        )


def measure(reference: np.ndarray, actual: np.ndarray) -> Metrics:
    """The metrics of one pair of tensors of the same shape."""
    accumulator = Accumulator()
    accumulator.add(reference, actual)
    return accumulator.result()


def half_ulps(reference: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Distance in float16 steps between two tensors, each rounded to float16 first (int32, same shape).

    Neighbouring float16 values are 1 apart, -0 and +0 are 0 apart, infinity is one step above 65504.
    """
    return np.abs(_ordered(actual) - _ordered(reference))


def _ordered(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        bits = np.asarray(values).astype(np.float16).view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)
