"""The broadcast rules as functions of two shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custom_ops.broadcast import equal_rank, numpy, pdpd, pdpd_runtime, same_shape, show

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(shapes, shapes)
def test_numpy_is_numpys_rule(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert numpy(a, b).shape == expected
    assert equal_rank(a, b).shape == (expected if len(a) == len(b) else None)
    assert same_shape(a, b).shape == (a if a == b else None)


@given(shapes, shapes, st.integers(-1, 4))
def test_pdpd_keeps_the_shape_of_a_and_repeats_only_ones_of_b(a, b, axis):
    found = pdpd(a, b, axis)
    assert (found.shape is None) == bool(found.mismatches)
    if found.shape is not None:
        run = np.trim_zeros(np.array(b) - 1, "b") + 1 if b else np.array([], int)
        start = len(a) - len(b) if axis == -1 else axis
        assert found.shape == a
        view = [1] * len(a)
        view[start : start + len(run)] = run.tolist()
        assert np.broadcast_shapes(a, tuple(view)) == a or not len(run)


@given(shapes, shapes, st.integers(-1, 4))
def test_runtime_takes_at_most_what_the_specification_takes_but_for_empty_tensors(a, b, axis):
    if 0 not in a + b and pdpd_runtime(a, b, axis).shape is not None:
        assert pdpd(a, b, axis) == pdpd_runtime(a, b, axis)


def test_unknown_dimensions_are_never_certain():
    for rule in (same_shape, equal_rank, numpy, pdpd, pdpd_runtime):
        found = rule((None, 2), (3, 2))
        assert found.shape is None
        assert [m.certain for m in found.mismatches] == [False]
        assert rule((None, 2), (3, 4)).mismatches[-1].certain
        assert rule(("N", 2), ("N", 2)).shape == ("N", 2)


@pytest.mark.parametrize(("shape", "text"), [((), "()"), ((3,), "(3,)"), ((2, "N", None), "(2, N, ?)")])
def test_show(shape, text):
    assert show(shape) == text


def test_pdpd_overhang_of_an_unknown_dimension_may_be_a_trailing_one():
    assert not pdpd((2, 3), (3, "N"), 1).mismatches[0].certain
    assert pdpd((2, 3), (3, 2), 1).mismatches[0].certain
