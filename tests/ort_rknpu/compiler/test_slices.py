"""Gather, Slice, Split and Concat."""

import numpy as np
import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ints, ops, table

X = {"x": (1, 16, 32, 32)}


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (np.array(3), ["Slice 1x16x32x32 -> 1x16x1x32", "Reshape 1x16x1x32 -> 1x16x32"]),
        (ints(3, 4, 5), ["Slice 1x16x32x32 -> 1x16x3x32"]),
        (ints(3, 9, 5), ["Gather 1x16x32x32 -> 1x16x3x32"]),
    ],
)
def test_gather_of_neighbours_is_a_slice(index, rows):
    assert table("y = Gather<axis=2>(x, i)", X, {"i": index.astype(np.int64)}) == rows


def test_gather_of_channels_is_a_conv():
    assert ops("y = Gather<axis=1>(x, i)", X, {"i": ints(0, 7, 3)}) == ["Conv"]


def test_slices_side_by_side_are_one_split():
    script = "a = Slice(x, zero, eight, one)\nb = Slice(x, eight, all, one)\ny = Sub(a, b)"
    weights = {"zero": ints(0), "eight": ints(8), "all": ints(16), "one": ints(1)}
    rows = compiled(script, X, weights).ops
    assert [row.op for row in rows] == ["Split", "Sub"]
    assert rows[0].origins == {0, 1}


def test_a_gap_between_slices_is_an_output_nobody_reads():
    script = "a = Slice(x, zero, four, one)\nb = Slice(x, twelve, all, one)\ny = Sub(a, b)"
    weights = {"zero": ints(0), "four": ints(4), "twelve": ints(12), "all": ints(16), "one": ints(1)}
    rows = compiled(script, X, weights).ops
    assert rows[0].output_shapes == ((1, 4, 32, 32), (1, 8, 32, 32), (1, 4, 32, 32))


def test_slices_that_overlap_stay():
    script = "a = Slice(x, zero, nine, one)\nb = Slice(x, seven, all, one)\ny = Sub(a, b)"
    weights = {"zero": ints(0), "nine": ints(9), "seven": ints(7), "all": ints(16), "one": ints(1)}
    assert ops(script, X, weights) == ["Slice", "Slice", "Sub"]


def test_halves_joined_the_other_way_round_are_a_gather():
    assert ops("a, b = Split<axis=3>(x)\ny = Concat<axis=3>(b, a)", X) == ["Gather"]
    assert "Gather" not in ops("a, b = Split<axis=3>(x)\ny = Concat<axis=2>(b, a)", X)


def test_the_rotated_half_of_a_position_embedding_is_a_mul_and_a_gather():
    script = "a, b = Split<axis=3>(x)\nn = Neg(b)\ny = Concat<axis=3>(n, a)"
    rows = compiled(script, X).ops
    assert [row.op for row in rows] == ["Mul", "Gather"]
    assert rows[1].origins == {0, 1, 2}


def test_the_focus_layer_is_a_conv():
    lines, names = [], []
    for h in (0, 1):
        for w in (0, 1):
            lines.append(f"p{h}{w} = Slice(x, s{h}{w}, far, axes, two)")
            names.append(f"p{h}{w}")
    script = "\n".join([*lines, f"y = Concat<axis=1>({', '.join(names)})"])
    weights = {f"s{h}{w}": ints(h, w) for h in (0, 1) for w in (0, 1)}
    weights |= {"far": ints(1000, 1000), "axes": ints(2, 3), "two": ints(2, 2)}
    assert table(script, {"x": (1, 3, 32, 32)}, weights) == ["Conv 1x3x32x32 -> 1x12x16x16"]


def test_repeating_a_dimension_of_1_is_an_expand():
    assert "Expand" in ops("y = Tile(x, r)", {"x": (1, 1, 8, 8)}, {"r": ints(1, 4, 1, 1)}, soc="rk3576")
    assert ops("y = Tile(x, r)", {"x": (1, 2, 8, 8)}, {"r": ints(1, 4, 1, 1)}) == ["Tile"]
