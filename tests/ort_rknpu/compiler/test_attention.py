"""Attention and softmax: what fuses, on which SoCs, and in which order of scale and mask."""

import numpy as np
import pytest

from tests.ort_rknpu.compiler.compiling import compiled, ints, ops, scalar, table

SHAPES = {"q": (1, 4, 20, 16), "k": (1, 4, 20, 16), "v": (1, 4, 20, 16)}
PRODUCED = "a = Sin(q)\nb = Sin(k)\nc = Sin(v)\nt = Transpose<perm=[0, 1, 3, 2]>(b)\nm = MatMul(a, t)\n"


def attention(steps: str) -> str:
    return PRODUCED + steps + "\ny = MatMul(p, c)"


@pytest.mark.parametrize(
    "steps",
    [
        "p = Softmax<axis=-1>(m)",
        "s = Div(m, scale)\np = Softmax<axis=-1>(s)",
        "s = Add(m, mask)\np = Softmax<axis=-1>(s)",
        "r = Mul(m, scale)\ns = Add(r, mask)\np = Softmax<axis=-1>(s)",
    ],
)
def test_attention_of_values_that_other_ops_wrote_is_one_op(steps):
    weights = {"scale": scalar(4), "mask": (1, 4, 20, 20)}
    used = {name: weight for name, weight in weights.items() if name in steps}
    assert "exSDPAttention" in ops(attention(steps), SHAPES, used)


@pytest.mark.parametrize("soc", ["rk3566", "rk2118", "rv1103b"])
def test_socs_without_attention_keep_the_products(soc):
    rows = ops(attention("p = Softmax<axis=-1>(m)"), SHAPES, soc=soc)
    assert "exSDPAttention" not in rows
    assert rows.count("exMatMul") == 2


def test_softmax_along_another_axis_is_no_attention():
    assert "exSDPAttention" not in ops(attention("p = Softmax<axis=1>(m)"), SHAPES)


def test_of_graph_inputs_a_mask_after_the_scale_does_not_fuse():
    script = "t = Transpose<perm=[0, 1, 3, 2]>(k)\nm = MatMul(q, t)\n{}\np = Softmax<axis=-1>(s)\ny = MatMul(p, v)"
    weights = {"scale": scalar(4), "mask": (1, 4, 20, 20)}
    then = ops(script.format("r = Div(m, scale)\ns = Add(r, mask)"), SHAPES, weights)
    before = ops(script.format("r = Add(m, mask)\ns = Div(r, scale)"), SHAPES, weights)
    assert "exSDPAttention" not in then
    assert "exSDPAttention" in before


def test_before_opset_13_a_softmax_flattens_what_follows_its_axis():
    rows = table("y = Softmax<axis=1>(x)", {"x": (2, 4, 8, 8)}, opset=11)
    assert "exSoftmax13 1x2x1x256 -> 1x2x1x256" in rows
    assert table("y = Softmax<axis=1>(x)", {"x": (2, 4, 8, 8)}) == ["exSoftmax13 2x4x8x8 -> 2x4x8x8"]


def test_a_mask_along_the_softmax_axis_is_exsoftmaxmask():
    weights = {"fill": scalar(-1e9), "mask": np.zeros((1, 1, 1, 20), bool)}
    script = "s = Sin(x)\nw = Where(mask, fill, s)\ny = Softmax<axis=-1>(w)"
    shapes = {"x": (1, 4, 20, 20)}
    assert "exSoftmaxMask" in ops(script, shapes, weights)
    assert "exSoftmaxMask" not in ops(script, shapes, weights, soc="rk3566")
    assert "exSoftmaxMask" not in ops(script, shapes, {**weights, "fill": scalar(-5)})
    assert "exSoftmaxMask" not in ops(script, shapes, {**weights, "mask": np.zeros((1, 1, 20, 20), bool)})


PACKED = """
    l = MatMul(x, w)
    r = Reshape(l, five)
    t = Transpose<perm=[2, 0, 3, 1, 4]>(r)
    a, b, c = Split<axis=0>(t)
    q = Squeeze(a, first)
    k = Squeeze(b, first)
    v = Squeeze(c, first)
    u = Transpose<perm=[0, 1, 3, 2]>(k)
    m = MatMul(q, u)
    p = Softmax<axis=-1>(m)
    y = MatMul(p, v)
"""


@pytest.mark.parametrize(
    ("depth", "split"), [(16, "Split 4x48x1x37 -> 4x16x1x37"), (15, "Split 4x15x3x37 -> 4x15x1x37")]
)
def test_packed_heads_are_cut_along_channels_where_a_head_fills_packs(depth, split):
    weights = {"w": (60, 12 * depth), "five": ints(1, 37, 3, 4, depth), "first": ints(0)}
    rows = table(PACKED, {"x": (1, 37, 60)}, weights)
    assert split in rows
    assert sum(row.startswith("Transpose") for row in rows if "37" in row.split(" -> ")[0]) <= 2


def test_packed_heads_of_several_batches_are_sorted_by_a_gather():
    weights = {"w": (60, 192), "five": ints(2, 37, 3, 4, 16), "first": ints(0)}
    rows = compiled(PACKED, {"x": (2, 37, 60)}, weights).ops
    gather = next(row for row in rows if row.op == "Gather")
    assert gather.output_shapes[0] == (24, 16, 1, 37)
    assert {2, 3} <= gather.origins
