"""What becomes a Conv, or goes into one, and what a recurrent op is wrapped in."""

from __future__ import annotations

import numpy as np
import pytest

from ort_rknpu.compiler import compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target
from tests.ort_rknpu.compiler.compiling import compiled, ints, model_of, ops, table

X = {"x": (1, 16, 8, 8)}
POINTWISE = {"w": (8, 16, 1, 1)}
BN = {"s": (8,), "b": (8,), "m": (8,), "v": np.ones(8, np.float32)}


@pytest.mark.parametrize(
    ("script", "weights", "out"),
    [
        ("y = ReduceMean<axes=[2, 3]>(x)", {}, "1x16x1x1"),
        ("y = ReduceMean<axes=[1]>(x)", {}, "1x1x8x8"),
        ("y = ReduceSum(x, a)", {"a": ints(1)}, "1x1x8x8"),
    ],
)
def test_a_mean_or_sum_is_a_conv(script, weights, out):
    assert table(script, X, weights) == [f"Conv 1x16x8x8 -> {out}"]


def test_l2_is_a_conv_of_squares_under_a_root():
    assert ops("y = ReduceL2<axes=[1]>(x)", X) == ["Pow", "Conv", "Pow"]


def test_a_running_sum_is_a_conv_over_channels():
    rows = compiled("y = CumSum(x, a)", {"x": (1, 20, 32)}, {"a": np.array(1, np.int64)}).ops
    assert [row.op for row in rows] == ["Reshape", "Conv", "Reshape"]
    assert {origin for row in rows for origin in row.origins} == {0}


@pytest.mark.parametrize(("soc", "op"), [("rk3588", "AveragePool"), ("rk3566", "AveragePool"), ("rv1103b", "Conv")])
def test_some_targets_average_by_a_conv(soc, op):
    assert ops("y = AveragePool<kernel_shape=[3, 3]>(x)", X, soc=soc) == [op]


def test_constants_after_a_conv_go_into_it():
    assert ops("c = Conv(x, w)\ny = BatchNormalization(c, s, b, m, v)", X, {**POINTWISE, **BN}) == ["Conv"]
    assert ops("c = Conv(x, w)\ny = Add(c, s)", X, {**POINTWISE, "s": (8, 1, 1)}) == ["Conv"]
    # a constant that differs along the width does not
    assert "Add" in "".join(ops("c = Conv(x, w)\ny = Add(c, s)", X, {**POINTWISE, "s": (1, 8, 8)}))
    # nor does one after a Conv that something else reads
    shared = "c = Conv(x, w)\nd = Sin(c)\ne = BatchNormalization(c, s, b, m, v)\ny = Mul(d, e)"
    assert "BatchNormalization" in ops(shared, X, {**POINTWISE, **BN})


def test_zeros_around_a_conv_are_its_pads():
    steps, weights = "c = Pad(x, p, fill)\ny = Conv(c, w)", {"w": (8, 16, 3, 3), "p": ints(0, 0, 1, 1, 0, 0, 1, 1)}
    assert ops(steps, X, {**weights, "fill": np.array(0, np.float32)}) == ["Conv"]
    assert ops(steps, X, {**weights, "fill": np.array(1, np.float32)}) == ["Pad", "Conv"]


@pytest.mark.parametrize(("dilation", "rows"), [(2, ["Conv"]), (40, ["Pad", "Gather", "Conv"])])
def test_a_large_dilation_gathers_the_rows_first(dilation, rows):
    steps = f"y = Conv<dilations=[{dilation}, 1], pads=[{dilation}, 1, {dilation}, 1]>(x, w)"
    assert ops(steps, {"x": (1, 16, 64, 64)}, {"w": (8, 16, 3, 3)}) == rows


def test_depth_to_space_is_a_conv_transpose():
    assert table("y = DepthToSpace<blocksize=2>(x)", X) == ["ConvTranspose 1x16x8x8 -> 1x4x16x16"]


@pytest.mark.parametrize(("batch", "extra"), [(1, []), (4, []), (2, ["Pad"])])
def test_a_batch_of_a_recurrent_op_is_one_or_fours(batch, extra):
    weights = {"w": (1, 32, 16), "r": (1, 32, 8), "b": (1, 64)}
    rows = ops("s = Sin(x)\na, h, c = LSTM<hidden_size=8>(s, w, r, b)", {"x": (5, batch, 16)}, weights)
    assert "LSTM" in rows
    assert [row for row in rows if row == "Pad"] == extra
    assert ("Slice" in rows) == bool(extra)


def test_targets_alike_share_their_rows_and_every_node_is_accounted_for():
    model = Model.load(model_of("c = Conv(x, w)\nd = Relu(c)\ny = Softmax<axis=-1>(d)", X, POINTWISE))
    first, second = compile_model(model, [get_target("rk3588"), get_target("rk3576")])
    assert [row.op for row in first.ops] == [row.op for row in second.ops]
    named = {origin for row in first.ops for origin in row.origins}
    assert named == {0, 1, 2}
