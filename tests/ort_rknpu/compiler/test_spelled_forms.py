"""Which spelling of a formula the compiler knows, as the toolkit was seen to fuse it or not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from ort_rknpu.compiler import compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target

HEAD = '<ir_version: 8, opset_import: ["": 13]>\nagraph '
WEIGHT = "float[64] w = {" + ", ".join(str(0.5 + i / 64) for i in range(64)) + "}"


def rows(text: str) -> list[str]:
    """The predicted rows on rk3576, those off the NPU marked by an exclamation mark."""
    made = Model.load(parser.parse_model(HEAD + text))
    (found,) = compile_model(made, [get_target("rk3576")])
    return [row.op + ("" if row.device == "npu" else "!") for row in found.ops]


def gelu(last: str, added: str, inner: str) -> str:
    return f"""(float[1, 64, 8, 8] x) => (float[1, 64, 8, 8] y)
    <float[1] half = {{0.5}}, float[1] one = {{1.0}},
     float[1] root = {{1.4142135}}, float[1] inverse = {{0.70710677}}> {{
        i = {inner}
        e = Erf(i)
        a = Add({added})
        p = Mul(x, a)
        y = Mul({last})
    }}"""


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        (gelu("p, half", "e, one", "Div(x, root)"), True),
        (gelu("half, p", "e, one", "Div(x, root)"), False),
        (gelu("p, half", "one, e", "Div(x, root)"), False),
        (gelu("p, half", "e, one", "Mul(x, inverse)"), False),
    ],
)
def test_gelu_is_known_with_its_constants_second_and_a_division(text: str, fused: bool) -> None:
    assert (rows(text) == ["exGelu"]) == fused
    assert ("Erf!" in rows(text)) != fused


@pytest.mark.parametrize(("inverse", "fused"), [("Div(one, r)", True), ("Reciprocal(r)", False)])
@pytest.mark.parametrize("product", ["w, s", "s, w"])
def test_rms_norm_is_known_with_a_division_and_the_weight_on_either_side(
    inverse: str, fused: bool, product: str
) -> None:
    text = f"""(float[1, 32, 64] x) => (float[1, 32, 64] y)
    <float two = {{2.0}}, float one = {{1.0}}, float eps = {{1e-6}}, {WEIGHT}> {{
        q = Pow(x, two)
        m = ReduceMean<axes = [-1]>(q)
        a = Add(m, eps)
        r = Sqrt(a)
        i = {inverse}
        s = Mul(x, i)
        y = Mul({product})
    }}"""
    assert ("exNorm" in rows(text)) == fused


def slices(height: int, width: int, channel: int, steps: tuple[int, int]) -> str:
    """Four Slices of ``steps`` along two axes, joined along ``channel``."""
    shape = [1, 16, 16, 16]
    out = [1, 16, 16, 16]
    out[height] //= steps[0]
    out[width] //= steps[1]
    out[channel] *= 4
    body = ""
    for index, (row, column) in enumerate(np.ndindex(2, 2)):
        body += f"""
        a{index} = Slice(x, o{row}, end, h, s0)
        b{index} = Slice(a{index}, o{column}, end, v, s1)"""
    shapes = [", ".join(map(str, item)) for item in (shape, out)]
    return f"""(float[{shapes[0]}] x) => (float[{shapes[1]}] y)
    <int64[1] o0 = {{0}}, int64[1] o1 = {{1}}, int64[1] end = {{1000}}, int64[1] h = {{{height}}},
     int64[1] v = {{{width}}}, int64[1] s0 = {{{steps[0]}}}, int64[1] s1 = {{{steps[1]}}}> {{{body}
        y = Concat<axis = {channel}>(b0, b1, b2, b3)
    }}"""


def test_focus_is_a_conv_in_either_layout() -> None:
    assert rows(slices(2, 3, 1, (2, 2))) == ["Conv"]
    assert rows(slices(1, 2, 3, (2, 2))) == ["Transpose", "Conv", "Transpose"]
    assert "Conv" not in rows(slices(1, 3, 2, (2, 2)))


@pytest.mark.parametrize(("axes", "builds"), [("2, 3", False), ("-2, -1", False), ("3, 2", True), ("-1, -2", True)])
def test_a_squeezed_mean_over_the_map_is_refused_in_the_order_that_makes_it_a_global_pool(
    axes: str, builds: bool
) -> None:
    text = f"""(float[1, 16, 8, 8] x) => (float[1, 16] y) {{
        m = ReduceMean<axes = [{axes}], keepdims = 0>(x)
        y = Relu(m)
    }}"""
    (found,) = compile_model(Model.load(parser.parse_model(HEAD + text)), [get_target("rk3588")])
    assert found.build.ok == builds


@pytest.mark.parametrize(
    ("between", "expanded", "out", "expected"),
    [
        ("1, 8, 10, 1, 10", "1, 8, 10, 2, 10", "1, 8, 20, 10", ["Gather"]),
        ("1, 8, 1, 10, 10", "1, 8, 2, 10, 10", "1, 16, 10, 10", ["Conv"]),
        ("1, 8, 10, 1, 10, 1", "1, 8, 10, 2, 10, 2", "1, 8, 20, 20", ["Reshape", "Expand", "Reshape"]),
        ("1, 8, 10, 1, 10", "1, 8, 10, 2, 10", "1, 80, 2, 10", ["Reshape", "Expand"]),
    ],
)
def test_repeated_elements_are_gathered_where_one_dimension_repeats(
    between: str, expanded: str, out: str, expected: list[str]
) -> None:
    count = len(between.split(","))
    text = f"""(float[1, 8, 10, 10] x) => (float[{out}] y)
    <int64[{count}] b = {{{between}}}, int64[{count}] e = {{{expanded}}}, int64[4] o = {{{out}}}> {{
        r = Reshape(x, b)
        z = Expand(r, e)
        y = Reshape(z, o)
    }}"""
    assert rows(text) == expected
