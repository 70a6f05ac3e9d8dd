"""The algebra of layout chains, checked against numpy on real arrays."""

import numpy as np
import pytest

from ort_rknpu.compiler import layout

CASES = [
    ((1, 37, 4, 15), (0, 2, 3, 1), (1, 60, 1, 37)),
    ((2, 4, 20, 16), (0, 1, 3, 2), (8, 16, 1, 20)),
    ((1, 32, 32, 64), (0, 3, 1, 2), (1, 64, 1, 1024)),
    ((4, 15, 1, 37), (2, 3, 0, 1), (1, 37, 1, 60)),
]


@pytest.mark.parametrize(("before", "perm", "after"), CASES)
def test_a_transpose_and_a_reshape_that_swap_compute_the_same(before, perm, after):
    x = np.arange(np.prod(before)).reshape(before)
    swapped = layout.transpose_then_reshape(before, perm, after)
    assert swapped is not None
    middle, new_perm = swapped
    np.testing.assert_array_equal(x.transpose(perm).reshape(after), x.reshape(middle).transpose(new_perm))


@pytest.mark.parametrize(("after", "perm", "before"), CASES)
def test_a_reshape_and_a_transpose_that_swap_compute_the_same(before, perm, after):
    undo = layout.invert(perm)
    middle = layout.permute(after, perm)
    x = np.arange(np.prod(before)).reshape(before)
    swapped = layout.reshape_then_transpose(before, middle, undo)
    assert swapped is not None
    new_perm, between = swapped
    assert x.transpose(new_perm).shape == between
    np.testing.assert_array_equal(x.reshape(middle).transpose(undo), x.transpose(new_perm).reshape(after))


def test_dimensions_that_interleave_do_not_refine():
    assert layout.refine((6, 4), (8, 3)) is None
    assert layout.refine((6, 4), (2, 12)) is not None


def test_a_reshape_that_moves_ones_is_a_transpose():
    assert layout.ones_as_transpose((20, 1, 4, 16), (1, 20, 4, 16)) == (1, 0, 2, 3)
    assert layout.ones_as_transpose((1, 64, 4, 4), (1, 64, 1, 16)) is None
