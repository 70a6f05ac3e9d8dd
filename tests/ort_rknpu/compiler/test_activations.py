"""Activations spelled out in several nodes, on either side of what the compiler recognises."""

import numpy as np
import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ops, scalar

X = {"x": (1, 16, 8, 8)}
GELU = """
    a = Div(x, root2)
    e = Erf(a)
    s = Add(e, one)
    m = Mul(x, s)
    y = Mul(m, half)
"""
GELU_WEIGHTS = {"root2": scalar(2**0.5), "one": scalar(1), "half": scalar(0.5)}


def test_erf_gelu_with_the_half_last_is_exgelu():
    rows = compiled(GELU, X, GELU_WEIGHTS).ops
    assert [row.op for row in rows] == ["exGelu"]
    assert rows[0].origins == {0, 1, 2, 3, 4}


def test_erf_gelu_with_the_half_first_stays():
    script = """
        a = Div(x, root2)
        e = Erf(a)
        s = Add(e, one)
        m = Mul(x, half)
        y = Mul(m, s)
    """
    assert "exGelu" not in ops(script, X, GELU_WEIGHTS)


def test_another_number_is_no_gelu():
    assert "exGelu" not in ops(GELU, X, {**GELU_WEIGHTS, "root2": scalar(1.5)})


def test_swish_needs_the_same_value_on_both_sides():
    assert ops("s = Sigmoid(x)\ny = Mul(x, s)", X) == ["exSwish"]
    assert ops("t = Tanh(x)\ns = Sigmoid(t)\ny = Mul(x, s)", X) == ["Tanh", "Sigmoid", "Mul"]


@pytest.mark.parametrize(("beta", "row"), [(scalar(1.702), ["exSwish"]), (np.array([1.702], np.float32), None)])
def test_a_swish_factor_has_rank_0(beta, row):
    found = ops("m = Mul(x, beta)\ns = Sigmoid(m)\ny = Mul(x, s)", X, {"beta": beta})
    assert found == row if row else "exSwish" not in found


def test_mish_from_softplus_or_from_exp_add_log():
    assert ops("s = Softplus(x)\nt = Tanh(s)\ny = Mul(x, t)", X) == ["exMish"]
    script = "e = Exp(x)\na = Add(e, one)\ns = Log(a)\nt = Tanh(s)\ny = Mul(x, t)"
    assert ops(script, X, {"one": scalar(1)}) == ["exMish"]


def test_hardswish_by_hardsigmoid_and_by_clip():
    assert ops("h = HardSigmoid<alpha=1/6, beta=0.5>(x)\ny = Mul(x, h)", X) == ["HardSwish"]
    assert ops("h = HardSigmoid<alpha=0.2, beta=0.5>(x)\ny = Mul(x, h)", X) == ["HardSigmoid", "Mul"]
    script = "a = Add(x, three)\nc = Clip(a, low, high)\nm = Mul(x, c)\ny = Div(m, six)"
    numbers = {"three": scalar(3), "low": scalar(0), "high": scalar(6), "six": scalar(6)}
    assert ops(script, X, numbers) == ["HardSwish"]


def test_glu_takes_the_second_half_as_its_gate():
    assert ops("a, b = Split<axis=1>(x)\ns = Sigmoid(b)\ny = Mul(a, s)", X) == ["exGlu"]
    assert "exGlu" not in ops("a, b = Split<axis=1>(x)\ns = Sigmoid(a)\ny = Mul(s, b)", X)


def test_an_activation_goes_into_the_conv_before_it():
    script = "c = Conv<kernel_shape=[3, 3]>(x, w)\ns = Sigmoid(c)\ny = Mul(c, s)"
    weights = {"w": (8, 16, 3, 3)}
    assert ops(script, X, weights) == ["ConvExSwish"]
    assert ops(script, X, weights, soc="rk2118") == ["Conv", "exSwish"]
