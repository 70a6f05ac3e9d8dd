"""MatMul, Gemm and Einsum: exMatMul between Transposes, and a Conv where one operand is a constant."""

import numpy as np

from tests.ort_rknpu.compiler.compiling import compiled, ops, scalar, table


def test_a_constant_right_operand_makes_a_conv_between_transposes():
    assert table("y = MatMul(x, w)", {"x": (1, 20, 64)}, {"w": (64, 32)}) == [
        "Reshape 1x20x64 -> 1x20x1x64",
        "Transpose 1x20x1x64 -> 1x64x1x20",
        "Conv 1x64x1x20 -> 1x32x1x20",
        "Transpose 1x32x1x20 -> 1x20x1x32",
        "Reshape 1x20x1x32 -> 1x20x32",
    ]


def test_layout_rows_of_a_matmul_are_its_own_and_wrapping_reshapes_are_nobodys():
    rows = compiled("y = MatMul(x, w)", {"x": (1, 20, 64)}, {"w": (64, 32)}).ops
    assert [row.inserted for row in rows] == [True, False, False, False, False]


def test_a_batch_of_matrices_moves_into_the_height():
    assert table("y = MatMul(x, w)", {"x": (1, 4, 20, 64)}, {"w": (64, 32)}) == [
        "Transpose 1x4x20x64 -> 1x64x4x20",
        "Conv 1x64x4x20 -> 1x32x4x20",
        "Transpose 1x32x4x20 -> 1x4x20x32",
    ]


def test_a_constant_with_batches_stays_an_exmatmul():
    assert "exMatMul" in ops("y = MatMul(x, w)", {"x": (1, 4, 20, 64)}, {"w": (1, 4, 64, 32)})


def test_run_time_operands_make_an_exmatmul():
    assert table("y = MatMul(a, b)", {"a": (1, 2, 4, 20, 16), "b": (1, 2, 4, 16, 20)})[-2:] == [
        "exMatMul 8x16x1x20 -> 8x20x1x20",
        "Reshape 8x20x1x20 -> 1x2x4x20x20",
    ]


def test_a_constant_left_operand_needs_no_transpose():
    assert ops("y = MatMul(w, x)", {"x": (1, 20, 64)}, {"w": (32, 20)}) == ["Reshape", "Conv", "Reshape"]


def test_a_row_per_batch_is_one_matrix():
    assert "Conv 1x64x1x25 -> 1x32x1x25" in table("y = MatMul(x, w)", {"x": (25, 1, 64)}, {"w": (64, 32)})


def test_gemm_takes_its_bias_in():
    assert table("y = Gemm<transB=1>(x, w, b)", {"x": (16, 64)}, {"w": (32, 64), "b": (32,)}) == [
        "Reshape 16x64 -> 16x64x1x1",
        "Conv 16x64x1x1 -> 16x32x1x1",
        "Reshape 16x32x1x1 -> 16x32",
    ]


def test_a_flattened_map_goes_straight_into_a_gemm():
    script = "f = Flatten(x)\ny = Gemm<transB=1>(f, w, b)"
    rows = compiled(script, {"x": (1, 8, 4, 4)}, {"w": (10, 128), "b": (10,)}).ops
    assert [row.op for row in rows] == ["Reshape", "Conv", "Reshape"]
    assert rows[0].origins == {1}


def test_a_bias_behind_a_linear_layer_leaves_no_row():
    script = "m = MatMul(x, w)\na = Add(m, b)\ny = Relu(a)"
    rows = ops(script, {"x": (1, 20, 64)}, {"w": (64, 32), "b": (32,)})
    assert rows == ["Reshape", "Transpose", "ConvRelu", "Transpose", "Reshape"]


def test_a_transpose_behind_run_time_operands_swaps_them():
    script = "t = Transpose<perm=[0, 1, 3, 2]>(b)\nm = MatMul(a, t)\ns = Mul(m, c)\ny = Transpose<perm=[0, 1, 3, 2]>(s)"
    shapes = {"a": (1, 4, 20, 16), "b": (1, 4, 12, 16)}
    rows = table(script, shapes, {"c": scalar(0.25)})
    assert "exMatMul 4x16x1x12 -> 4x12x1x20" in rows
    assert not any(row.startswith("Mul") for row in rows)


def test_einsum_of_queries_and_keys_is_an_exmatmul():
    shapes = {"q": (1, 4, 20, 16), "k": (1, 4, 20, 16)}
    assert table("y = Einsum<equation='bhqd,bhkd->bhqk'>(q, k)", shapes) == [
        "Transpose 1x4x20x16 -> 4x16x1x20",
        "Transpose 1x4x20x16 -> 4x16x1x20",
        "exMatMul 4x16x1x20 -> 4x20x1x20",
        "Transpose 4x20x1x20 -> 1x4x20x20",
    ]


def test_einsum_with_a_diagonal_stays():
    assert ops("y = Einsum<equation='bii,bij->bij'>(a, b)", {"a": (2, 3, 3), "b": (2, 3, 4)}) == ["Einsum"]


def test_constant_picks_per_place_are_an_exmatmul():
    index = np.zeros((1, 4, 8, 8), np.int64)
    rows = ops("y = GatherElements<axis=1>(x, i)", {"x": (1, 16, 8, 8)}, {"i": index})
    assert "exMatMul" in rows
    assert "GatherElements" not in rows
