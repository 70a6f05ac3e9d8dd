"""Normalisations, ops or spelled out, as exNorm over axis 1."""

import numpy as np
import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ints, ops, scalar, table

LAYER_NORM = """
    m = ReduceMean<axes=[-1]>(x)
    d = Sub(x, m)
    p = Pow(d, two)
    v = ReduceMean<axes=[-1]>(p)
    e = Add(v, eps)
    r = Sqrt(e)
    n = Div(d, r)
    s = Mul(n, w)
    y = Add(s, b)
"""
NUMBERS = {"two": scalar(2), "eps": scalar(1e-5), "w": (64,), "b": (64,)}


def test_layer_normalisation_turns_the_last_axis_to_the_channels():
    assert table("y = LayerNormalization<epsilon=1e-5>(x, w, b)", {"x": (4, 20, 64)}, {"w": (64,), "b": (64,)}) == [
        "Reshape 4x20x64 -> 4x20x1x64",
        "Transpose 4x20x1x64 -> 4x64x1x20",
        "exNorm 4x64x1x20 -> 4x64x1x20",
        "Transpose 4x64x1x20 -> 4x20x1x64",
        "Reshape 4x20x1x64 -> 4x20x64",
    ]


def test_spelled_layer_normalisation_is_one_op_of_all_its_nodes():
    rows = compiled(LAYER_NORM, {"x": (1, 20, 64)}, NUMBERS).ops
    norm = next(row for row in rows if row.op == "exNorm")
    assert norm.origins == set(range(9))


def test_another_second_axis_is_no_layer_normalisation():
    assert "exNorm" not in ops(
        LAYER_NORM.replace("v = ReduceMean<axes=[-1]>", "v = ReduceMean<axes=[1]>"), {"x": (1, 64, 64)}, NUMBERS
    )


def test_rms_normalisation_needs_its_weight():
    script = """
        p = Pow(x, two)
        v = ReduceMean<axes=[-1]>(p)
        e = Add(v, eps)
        r = Sqrt(e)
        i = Div(one, r)
        n = Mul(x, i)
        y = Mul(n, w)
    """
    numbers = {"two": scalar(2), "eps": scalar(1e-6), "one": scalar(1)}
    assert "exNorm" in ops(script, {"x": (1, 20, 64)}, {**numbers, "w": (64,)})
    bare = script.replace("y = Mul(n, w)", "y = Tanh(n)")
    assert "exNorm" not in ops(bare, {"x": (1, 20, 64)}, numbers)


def test_l2_normalisation_with_a_small_floor():
    script = "l = ReduceL2<axes=[1], keepdims=1>(x)\nc = Clip(l, low)\ne = Expand(c, s)\ny = Div(x, e)"
    weights = {"low": scalar(1e-12), "s": ints(1, 64, 8, 8)}
    assert ops(script, {"x": (1, 64, 8, 8)}, weights) == ["exNorm"]
    assert "exNorm" not in ops(script, {"x": (1, 64, 8, 8)}, {**weights, "low": scalar(3)})


def test_instance_normalisation_lays_the_map_out_as_channels():
    weights = {"w": (16,), "b": (16,)}
    assert table("y = InstanceNormalization(x, w, b)", {"x": (1, 16, 32, 32)}, weights) == [
        "Transpose 1x16x32x32 -> 32x32x1x16",
        "Reshape 32x32x1x16 -> 1x1024x1x16",
        "exNorm 1x1024x1x16 -> 1x1024x1x16",
        "Mul 1x1024x1x16 -> 1x1024x1x16",
        "Add 1x1024x1x16 -> 1x1024x1x16",
        "Reshape 1x1024x1x16 -> 32x32x1x16",
        "Transpose 32x32x1x16 -> 1x16x32x32",
    ]


def test_neutral_weights_of_an_instance_normalisation_leave_no_row():
    weights = {"w": np.ones(16, np.float32), "b": np.zeros(16, np.float32)}
    assert "Mul" not in ops("y = InstanceNormalization(x, w, b)", {"x": (1, 16, 32, 32)}, weights)


@pytest.mark.parametrize(("channels", "view"), [(16, "4x4096x1x1"), (32, "4x8x32x32")])
def test_every_group_of_a_group_normalisation_becomes_a_batch(channels, view):
    script = "r = Reshape(x, a)\nn = InstanceNormalization(r, w, b)\ny = Reshape(n, s)"
    weights = {"a": ints(1, 4, -1), "s": ints(1, channels, 32, 32)}
    neutral = {"w": np.ones(4, np.float32), "b": np.zeros(4, np.float32)}
    rows = table(script, {"x": (1, channels, 32, 32)}, {**weights, **neutral})
    assert f"exNorm {view} -> {view}" in rows
