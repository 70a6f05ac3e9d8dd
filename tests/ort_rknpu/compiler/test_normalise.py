"""Ops spelled anew, folded away or taken out because they change nothing."""

import numpy as np
import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ints, ops, scalar, table

X = {"x": (1, 16, 8, 8)}


@pytest.mark.parametrize(
    ("script", "weights", "row"),
    [
        ("y = Sub(x, c)", {"c": (16, 1, 1)}, "Add"),
        ("y = Div(x, c)", {"c": scalar(4)}, "Mul"),
        ("y = Neg(x)", {}, "Mul"),
        ("y = Abs(x)", {}, "LeakyRelu"),
        ("y = Reciprocal(x)", {}, "Div"),
    ],
)
def test_an_op_in_the_form_the_compiler_prefers(script, weights, row):
    assert ops(script, X, weights) == [row]


def test_a_constant_in_front_keeps_sub_and_div():
    assert ops("y = Sub(c, x)", X, {"c": scalar(1)}) == ["Sub"]
    assert ops("y = Div(c, x)", X, {"c": scalar(1)}) == ["Div"]


@pytest.mark.parametrize(
    "line",
    [
        "t = Identity(s)",
        "t = Dropout(s)",
        "t = Cast<to=1>(s)",
        "t = Add(s, zero)",
        "t = Mul(s, one)",
        "t = Pad(s, none)",
    ],
)
def test_an_op_that_changes_nothing_goes(line):
    weights = {"zero": np.zeros((1, 16, 1, 1), np.float32), "one": scalar(1), "none": ints(*[0] * 8)}
    used = {name: value for name, value in weights.items() if name in line}
    script = f"s = Sigmoid(x)\n{line}\ny = Tanh(t)"
    assert ops(script, X, used) == ["Sigmoid", "Tanh"]


def test_a_bias_of_zeros_is_no_addition_of_nothing():
    script = "s = Sigmoid(x)\ny = Add(s, zero)"
    assert ops(script, {"x": (1, 16, 8, 8)}, {"zero": np.zeros(8, np.float32)}) == ["Sigmoid", "Add"]


def test_constants_are_folded_and_cost_no_row():
    script = """
        t = Transpose<perm=[1, 0]>(w)
        y = MatMul(x, t)
    """
    result = compiled(script, {"x": (1, 64)}, {"w": (32, 64)})
    assert all(0 not in row.origins for row in result.ops)
    assert "Transpose" not in [row.op for row in result.ops]


def test_a_shape_is_known_before_it_runs():
    script = """
        s = Shape(x)
        y = Reshape(x, s)
    """
    assert ops("t = Tanh(x)\n" + script.replace("(x)", "(t)").replace("(x,", "(t,"), X)[0] == "Tanh"


def test_squeeze_unsqueeze_and_flatten_are_reshapes():
    assert table("y = Flatten(x)", X) == ["Reshape 1x16x8x8 -> 1x1024"]
    assert table("y = Squeeze(x, a)", {"x": (1, 16, 1, 8)}, {"a": ints(2)}) == ["Reshape 1x16x1x8 -> 1x16x8"]


def test_ops_that_compute_the_same_become_one_that_stands_for_both():
    script = """
        a = Sigmoid(x)
        b = Sigmoid(x)
        y = Add(a, b)
    """
    rows = compiled(script, X).ops
    assert [row.op for row in rows] == ["Sigmoid", "Add"]
    assert rows[0].origins == {0, 1}
