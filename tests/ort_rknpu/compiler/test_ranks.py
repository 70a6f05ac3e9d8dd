"""Wrapping of other ranks than 4: which view the compiler takes, and that nothing is wrapped that has rank 4."""

import pytest

from tests.ort_rknpu.compiler.compiling import ints, ops, table


@pytest.mark.parametrize(
    ("shape", "view"),
    [((64,), "1x64x1x1"), ((16, 64), "1x16x1x64"), ((4, 20, 64), "4x20x1x64"), ((1, 3, 4, 8, 8), "3x4x8x8")],
)
def test_an_element_wise_op_of_another_rank_stands_between_reshapes(shape, view):
    flat = "x".join(map(str, shape))
    assert table("y = Sigmoid(x)", {"x": shape}) == [
        f"Reshape {flat} -> {view}",
        f"Sigmoid {view} -> {view}",
        f"Reshape {view} -> {flat}",
    ]


def test_rank_4_needs_no_reshape():
    assert table("y = Sigmoid(x)", {"x": (1, 16, 8, 8)}) == ["Sigmoid 1x16x8x8 -> 1x16x8x8"]


def test_an_op_that_the_compiler_never_wraps_keeps_its_rank():
    assert table("y = HardSigmoid(x)", {"x": (1, 20, 64)}) == ["HardSigmoid 1x20x64 -> 1x20x64"]


def test_a_softmax_axis_moves_with_the_view():
    assert table("y = Softmax<axis=2>(x)", {"x": (1, 20, 64)})[1] == "exSoftmax13 1x20x1x64 -> 1x20x1x64"


def test_a_concat_on_the_first_axis_of_rank_3_keeps_it_apart():
    rows = table("y = Concat<axis=0>(a, b)", {"a": (2, 3, 8), "b": (4, 3, 8)})
    assert "Concat 1x2x3x8 -> 1x6x3x8" in rows


def test_a_transpose_of_rank_3_and_5_becomes_one_of_rank_4():
    assert table("y = Transpose<perm=[0, 2, 1]>(x)", {"x": (1, 20, 64)}) == [
        "Reshape 1x20x64 -> 1x20x1x64",
        "Transpose 1x20x1x64 -> 1x64x1x20",
        "Reshape 1x64x1x20 -> 1x64x20",
    ]
    assert "Transpose 2x8x16x16 -> 8x2x16x16" in table(
        "y = Transpose<perm=[0, 2, 1, 3, 4]>(x)", {"x": (1, 2, 8, 16, 16)}
    )


def test_neighbours_that_move_together_become_one_dimension():
    rows = table("y = Transpose<perm=[0, 1, 3, 2, 4, 5]>(x)", {"x": (1, 4, 7, 4, 7, 32)}, soc="rk3576")
    assert rows[1] == "Transpose 4x7x4x224 -> 4x4x7x224"


def test_a_conv_of_rank_3_gets_a_height_of_1():
    rows = table("y = Conv<kernel_shape=[3], pads=[1, 1]>(x, w)", {"x": (1, 16, 100)}, {"w": (8, 16, 3)})
    assert "Conv 1x16x1x100 -> 1x8x1x100" in rows


def test_a_prelu_follows_the_conv_to_rank_4():
    script = """
        c = Conv<kernel_shape=[3], pads=[1, 1]>(x, w)
        y = PRelu(c, slope)
    """
    rows = ops(script, {"x": (1, 16, 100)}, {"w": (8, 16, 3), "slope": (8, 1)}, soc="rk2118")
    assert rows == ["Reshape", "ConvPRelu", "Reshape"]
    assert ops("y = PRelu(x, slope)", {"x": (1, 8, 100)}, {"slope": (8, 1)}) == ["PRelu"]


def test_reductions_that_drop_dimensions_keep_them_and_reshape():
    rows = table("y = ReduceMax<axes=[1], keepdims=0>(x)", {"x": (1, 16, 32, 32)})
    assert rows == ["ReduceMax 1x16x32x32 -> 1x1x32x32", "Reshape 1x1x32x32 -> 1x32x32"]


def test_a_pad_of_rank_3_is_padded_at_the_same_places():
    rows = table("y = Pad(x, pads)", {"x": (1, 16, 100)}, {"pads": ints(0, 0, 2, 0, 0, 3)})
    assert "Pad 1x16x1x100 -> 1x16x1x105" in rows
