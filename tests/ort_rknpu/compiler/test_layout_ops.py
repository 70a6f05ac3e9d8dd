"""What remains of Transposes and Reshapes once they met, passed each other and cancelled.

The rows were measured with toolkit 2.3.2 on chains between two MaxPools, which nothing passes.
"""

import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ints, table

POOL = "MaxPool<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>"


def between(shape, *steps):
    """The layout rows of a chain of ("T", perm) and ("R", shape) between two pools."""
    lines, weights, value = [f"v = {POOL}(x)"], {}, "v"
    for number, (kind, argument) in enumerate(steps):
        name = f"{kind.lower()}{number}"
        if kind == "T":
            lines.append(f"{name} = Transpose<perm={list(argument)}>({value})")
        else:
            weights[f"s{number}"] = ints(*argument)
            lines.append(f"{name} = Reshape({value}, s{number})")
        value = name
    lines.append(f"y = {POOL}({value})")
    rows = table("\n".join(lines), {"x": shape}, weights, soc="rk3566")
    return [row for row in rows if not row.startswith("MaxPool")]


@pytest.mark.parametrize(
    ("shape", "steps", "rows"),
    [
        # merging batches, or a map in front of the channels that do not fill packs: the Reshape goes first
        ((4, 2, 48, 6), [("T", (0, 1, 3, 2)), ("R", (8, 6, 1, 48))], ["R 8x48x1x6", "T 8x6x1x48"]),
        ((1, 32, 4, 5), [("T", (0, 2, 3, 1)), ("R", (1, 20, 1, 32))], ["R 1x32x1x20", "T 1x20x1x32"]),
        ((1, 32, 1, 20), [("T", (0, 3, 2, 1)), ("R", (1, 4, 5, 32))], ["R 1x32x4x5", "T 1x4x5x32"]),
        ((4, 6, 3, 5), [("T", (0, 1, 3, 2)), ("R", (1, 24, 5, 3))], ["R 24x3x1x5", "T 1x24x5x3"]),
        # the Reshape is harmless where it is: n and c stay
        ((4, 15, 1, 37), [("T", (2, 3, 0, 1)), ("R", (1, 37, 1, 60))], ["T 1x37x4x15", "R 1x37x1x60"]),
        ((1, 4, 5, 32), [("T", (0, 3, 1, 2)), ("R", (8, 4, 4, 5))], ["T 1x32x4x5", "R 8x4x4x5"]),
        # the two do not commute
        ((1, 4, 20, 16), [("T", (0, 2, 1, 3)), ("R", (1, 20, 1, 64))], ["T 1x20x4x16", "R 1x20x1x64"]),
        # the 1s move so that the Reshape keeps h and w
        ((1, 32, 4, 4), [("T", (0, 2, 3, 1)), ("R", (1, 16, 1, 32))], ["T 4x4x1x32", "R 1x16x1x32"]),
        # a Reshape in front of a Transpose stays there
        ((1, 20, 1, 64), [("R", (1, 20, 4, 16)), ("T", (0, 2, 1, 3))], ["R 1x20x4x16", "T 1x4x20x16"]),
        ((4, 2, 6, 48), [("R", (8, 6, 1, 48)), ("T", (0, 3, 2, 1))], ["R 8x6x1x48", "T 8x48x1x6"]),
        # unless another Reshape follows to merge with
        (
            (1, 20, 1, 64),
            [("R", (1, 20, 4, 16)), ("T", (0, 2, 3, 1)), ("R", (4, 16, 1, 20))],
            ["T 1x64x1x20", "R 4x16x1x20"],
        ),
        # Transposes around a Reshape cancel through it
        ((1, 64, 1, 20), [("T", (0, 3, 2, 1)), ("R", (1, 20, 4, 16)), ("T", (0, 2, 3, 1))], ["R 1x4x16x20"]),
        ((1, 64, 1, 20), [("T", (0, 3, 2, 1)), ("R", (1, 4, 5, 64)), ("T", (0, 3, 1, 2))], ["R 1x64x4x5"]),
        # neighbours of one kind merge or cancel
        ((1, 4, 5, 32), [("T", (0, 3, 1, 2)), ("T", (0, 2, 3, 1))], []),
        ((1, 4, 5, 32), [("R", (1, 20, 1, 32)), ("R", (1, 4, 5, 32))], []),
        # a Reshape that only moves 1s is a Transpose
        ((20, 1, 4, 16), [("R", (1, 20, 4, 16))], ["T 1x20x4x16"]),
    ],
)  # fmt: skip
def test_a_chain_of_layout_ops(shape, steps, rows):
    short = [f"{row[0]} {row.split(' -> ')[1]}" for row in between(shape, *steps)]
    assert short == rows


@pytest.mark.parametrize(
    ("line", "weights"),
    [
        ("a = Relu(t)", {}),
        ("a = Exp(t)", {}),
        ("a = Add(t, c)", {"c": (1, 32, 1, 1)}),
        ("a = Mul(t, c)", {"c": (1, 32, 4, 5)}),
        ("a = Softmax<axis=1>(t)", {}),
    ],
)
def test_a_transpose_passes_an_element_wise_op_and_softmax(line, weights):
    script = f"v = {POOL}(x)\nt = Transpose<perm=[0, 3, 1, 2]>(v)\n{line}\ny = {POOL}(a)"
    rows = table(script, {"x": (1, 4, 5, 32)}, weights)
    assert rows[1].endswith("1x4x5x32")
    assert rows[2] == "Transpose 1x4x5x32 -> 1x32x4x5"


def test_a_transpose_does_not_pass_an_op_that_the_compiler_does_not_swap():
    script = f"v = {POOL}(x)\nt = Transpose<perm=[0, 3, 1, 2]>(v)\na = HardSigmoid(t)\ny = {POOL}(a)"
    assert table(script, {"x": (1, 4, 5, 32)})[1].startswith("Transpose")


@pytest.mark.parametrize(
    ("line", "shape", "moves"),
    [
        ("a = Relu(t)", (1, 4, 5, 32), True),
        ("a = Add(t, c)", (1, 4, 5, 32), True),
        ("a = Softmax<axis=3>(t)", (1, 4, 5, 32), True),
        ("a = Softmax<axis=1>(t)", (1, 4, 5, 32), False),
    ],
)
def test_a_reshape_passes_where_the_axis_stays_whole(line, shape, moves):
    script = f"v = {POOL}(x)\nt = Reshape(v, s)\n{line}\ny = {POOL}(a)"
    weights = {"s": ints(1, 20, 1, 32), **({"c": (32,)} if "c)" in line else {})}
    rows = table(script, {"x": shape}, weights)
    assert rows[2 if moves else 1].startswith("Reshape")


def test_a_residual_between_linear_layers_is_added_where_no_transpose_is_needed():
    script = """
        a = MatMul(x, w1)
        b = Relu(a)
        c = MatMul(b, w2)
        d = Add(a, c)
        y = MatMul(d, w3)
    """
    rows = table(script, {"x": (1, 20, 64)}, {"w1": (64, 64), "w2": (64, 64), "w3": (64, 64)}, soc="rk2118")
    assert "Add 1x64x1x20 -> 1x64x1x20" in rows
    assert sum(row.startswith("Transpose") for row in rows) == 2


def test_equal_layout_ops_of_one_value_are_one_row_for_both():
    script = """
        t = Transpose<perm=[0, 3, 1, 2]>(x)
        u = Transpose<perm=[0, 3, 1, 2]>(x)
        y = Concat<axis=1>(t, u)
    """
    rows = compiled(script, {"x": (1, 4, 5, 32)}).ops
    assert [row.op for row in rows] == ["Transpose", "Concat"]
    assert rows[0].origins == {0, 1}


def test_reshapes_of_both_operands_are_done_once_behind_the_addition():
    script = f"""
        a = {POOL}(x)
        b = Sin(a)
        r = Reshape(a, s)
        q = Reshape(b, s)
        c = Add(r, q)
        y = {POOL}(c)
    """
    rows = table(script, {"x": (1, 32, 4, 5)}, {"s": ints(1, 32, 1, 20)})
    assert "Add 1x32x4x5 -> 1x32x4x5" in rows
    assert sum(row.startswith("Reshape") for row in rows) == 1


def test_a_conv_of_kernel_1_moves_in_front_of_the_transpose_of_its_batch():
    script = f"v = {POOL}(x)\nt = Transpose<perm=[2, 1, 0, 3]>(v)\nc = Conv<kernel_shape=[1, 1]>(t, w)\ny = {POOL}(c)"
    rows = table(script, {"x": (1, 32, 16, 49)}, {"w": (96, 32, 1, 1)})
    assert rows[1] == "Conv 1x32x16x49 -> 1x96x16x49"


def test_a_channel_shuffle_is_a_conv():
    script = "r = Reshape(x, a)\nt = Transpose<perm=[0, 2, 1, 3, 4]>(r)\ny = Reshape(t, b)"
    weights = {"a": ints(1, 2, 16, 8, 8), "b": ints(1, 32, 8, 8)}
    rows = compiled(script, {"x": (1, 32, 8, 8)}, weights).ops
    assert [(row.op, row.origins) for row in rows] == [("Conv", frozenset({1}))]


def test_a_transpose_before_a_flattened_linear_layer_goes_into_its_weights():
    script = "t = Transpose<perm=[0, 2, 3, 1]>(x)\nf = Flatten(t)\ny = Gemm(f, w)"
    rows = table(script, {"x": (1, 64, 3, 3)}, {"w": (576, 10)})
    assert rows[0] == "Reshape 1x64x3x3 -> 1x576x1x1"


def test_a_pixel_shuffle_in_three_steps_is_a_conv_transpose():
    script = "r = Reshape(x, a)\nt = Transpose<perm=[0, 1, 4, 2, 5, 3]>(r)\ny = Reshape(t, b)"
    weights = {"a": ints(1, 4, 2, 2, 8, 8), "b": ints(1, 4, 16, 16)}
    assert table(script, {"x": (1, 16, 8, 8)}, weights) == ["ConvTranspose 1x16x8x8 -> 1x4x16x16"]
