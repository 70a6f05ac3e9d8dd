"""What the toolkit refuses: each condition on both of its sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.rules.build import refused_nodes, refused_rows
from ort_rknpu.targets.socs import get_target

Shape = tuple[int, ...]


class Builder:
    """A graph written down op by op."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.count = 0

    def input(self, shape: Shape) -> Value:
        self.count += 1
        value = Value(f"x{self.count}", shape, "float32")
        self.graph.inputs.append(value)
        return value

    def const(self, data: Any) -> Value:
        self.count += 1
        array = np.asarray(data)
        return Value(f"c{self.count}", array.shape, str(array.dtype), const=array)

    def weight(self, shape: Shape) -> Value:
        self.count += 1
        return Value(f"w{self.count}", shape, "float32", constant=True)

    def add(self, op_type: str, inputs: list[Value | None], shape: Shape, **attributes: Any) -> Value:
        self.count += 1
        value = Value(f"y{self.count}", shape, "float32")
        self.graph.add(Op(op_type, inputs, [value], attributes, name=f"{op_type}{self.count}"))
        self.graph.outputs = [value]
        return value

    def ids(self, soc: str = "rk3588", precision: str | None = None, toolkit: str = "2.3.2") -> list[str]:
        found = refused_nodes(self.graph, 17, get_target(soc, precision, toolkit))
        return [refusal.clause.id.split(".", 1)[1] for refusal in found]


MAP = (1, 16, 8, 8)


@pytest.mark.parametrize(("opset", "refused"), [(19, False), (20, True), (None, False)])
def test_models_beyond_opset_19_are_refused(opset: int | None, refused: bool) -> None:
    b = Builder()
    b.add("Relu", [b.input(MAP)], MAP)
    found = refused_nodes(b.graph, opset, get_target("rk3588"))
    assert [r.clause.id for r in found] == (["rk3588.model.opset"] if refused else [])


def test_a_model_whose_outputs_are_all_constant_is_refused() -> None:
    b = Builder()
    b.input(MAP)
    b.graph.outputs = [b.const([1.0])]
    assert b.ids() == ["model.outputs"]


def reduce_mean(axes: list[int], keepdims: int, read: bool) -> Builder:
    b = Builder()
    mean = b.add("ReduceMean", [b.input(MAP)], MAP[:2], axes=axes, keepdims=keepdims)
    if read:
        b.add("Relu", [mean], MAP[:2])
    return b


@pytest.mark.parametrize(
    ("axes", "keepdims", "read", "refused"),
    [
        ([2, 3], 0, True, True),
        ([2, 3], 0, False, False),
        ([2, 3], 1, True, False),
        ([-1, -2], 0, True, False),
        ([1], 0, True, False),
    ],
)
def test_a_squeezing_mean_over_the_map_may_not_be_read(
    axes: list[int], keepdims: int, read: bool, refused: bool
) -> None:
    b = reduce_mean(axes, keepdims, read)
    assert b.ids() == (["ReduceMean.squeezed"] if refused else [])
    assert b.ids(toolkit="2.5.0") == []


@pytest.mark.parametrize(
    ("constants", "through", "refused"), [(2, "Transpose", True), (1, "Transpose", False), (2, "Relu", False)]
)
def test_two_constants_before_a_transposed_tensor_break_concat(constants: int, through: str, refused: bool) -> None:
    b = Builder()
    laid = b.add(through, [b.input((1, 16, 10))], (1, 10, 16))
    first = [b.weight((1, 1, 16)) for _ in range(constants)]
    b.add("Concat", [*first, laid], (1, 10 + constants, 16), axis=1)
    assert b.ids() == (["Concat.leading_constants"] if refused else [])
    assert b.ids(toolkit="2.5.0") == []


def attention(batch: int, heads: int, scaled: bool) -> Builder:
    b = Builder()
    q, k, v = (b.input((batch, heads, 20, 16)) for _ in range(3))
    scores: Shape = (batch, heads, 20, 20)
    product = b.add("MatMul", [q, b.add("Transpose", [k], (batch, heads, 16, 20), perm=[0, 1, 3, 2])], scores)
    if scaled:
        product = b.add("Mul", [product, b.const(0.25)], scores)
    b.add("MatMul", [b.add("Softmax", [product], scores, axis=-1), v], (batch, heads, 20, 16))
    return b


@pytest.mark.parametrize(
    ("batch", "heads", "scaled", "refused"),
    [(1, 4, False, True), (4, 1, False, True), (4, 4, False, False), (1, 4, True, False)],
)
def test_unscaled_attention_breaks_2_5_0_where_it_fuses(batch: int, heads: int, scaled: bool, refused: bool) -> None:
    b = attention(batch, heads, scaled)
    assert b.ids(toolkit="2.5.0") == (["Softmax.attention_scale"] if refused else [])
    assert b.ids("rk3566", toolkit="2.5.0") == []
    assert b.ids() == []


@pytest.mark.parametrize(
    ("bias", "batch", "refused"), [([0.5] * 48, 1, True), ([0.5] * 48, 2, False), (list(range(48)), 1, False)]
)
def test_a_uniform_bias_of_packed_heads_breaks_2_5_0(bias: list[float], batch: int, refused: bool) -> None:
    b = Builder()
    product = b.add("MatMul", [b.input((batch, 10, 16)), b.weight((16, 48))], (batch, 10, 48))
    packed = b.add("Add", [b.const(np.array(bias, "f")), product], (batch, 10, 48))
    heads = b.add("Reshape", [packed, b.const([batch, 10, 3, 2, 8])], (batch, 10, 3, 2, 8))
    turned = b.add("Transpose", [heads], (3, batch, 2, 10, 8), perm=[2, 0, 3, 1, 4])
    for index in range(3):
        b.add("Gather", [turned, b.const(index)], (batch, 2, 10, 8), axis=0)
    assert b.ids(toolkit="2.5.0") == (["Add.uniform_bias"] if refused else [])
    assert b.ids() == []


@pytest.mark.parametrize("shared", [True, False])
def test_the_sum_of_two_products_of_one_tensor_breaks_2_5_0(shared: bool) -> None:
    b = Builder()
    x = b.input((1, 16))
    other = x if shared else b.input((1, 16))
    first = b.add("Gemm", [x, b.weight((16, 8))], (1, 8))
    second = b.add("Gemm", [other, b.weight((16, 8))], (1, 8))
    b.add("Add", [first, second], (1, 8))
    assert b.ids(toolkit="2.5.0") == (["Add.twin_heads"] if shared else [])
    assert b.ids() == []


def single(op_type: str, inputs: list[Any], output: Shape, **attributes: Any) -> Builder:
    b = Builder()
    values: list[Value | None] = [
        None if item is None else b.input(item) if isinstance(item, tuple) else b.const(item) for item in inputs
    ]
    b.add(op_type, values, output, **attributes)
    return b


BOX, VOLUME = (1, 16, 16, 16), (1, 4, 8, 8, 8)


@pytest.mark.parametrize(
    ("builder", "soc", "refused"),
    [
        (single("Resize", [MAP, None, [1, 1, 2, 2]], BOX, mode="cubic"), "rk3588", "Resize.mode"),
        (single("Resize", [MAP, None, [1, 1, 2, 2]], BOX, mode="linear"), "rk3588", ""),
        (single("Resize", [MAP, None, (4,)], BOX), "rk3588", "Resize.scales"),
        (single("Resize", [VOLUME, None, [1, 1, 1, 1, 1]], VOLUME), "rk3588", "Resize.rank"),
        (single("MaxPool", [VOLUME], VOLUME, kernel_shape=[2, 2, 2]), "rk3588", "MaxPool.rank"),
        (single("MaxPool", [MAP], MAP, kernel_shape=[3, 3], dilations=[2, 2]), "rk3576", "MaxPool.dilations"),
        (single("MaxPool", [MAP], MAP, kernel_shape=[3, 3], dilations=[2, 2]), "rk3588", ""),
        (single("LayerNormalization", [(1, 10, 64)], (1, 10, 64)), "rk3588", "LayerNormalization.epsilon"),
        (single("LayerNormalization", [(1, 10, 64)], (1, 10, 64), epsilon=1e-5), "rk3588", ""),
        (single("Reshape", [MAP, (2,)], (16, 64)), "rk3588", "Reshape.shape"),
        (single("Reshape", [MAP, [16, 64]], (16, 64)), "rk3588", ""),
        (single("NonZero", [(4, 4)], (2, 3)), "rk3588", "NonZero.data"),
        (single("ConvTranspose", [MAP, [[[[1.0]]]]], BOX, auto_pad="SAME_UPPER"), "rk3588", "ConvTranspose.auto_pad"),
        (single("ConvTranspose", [MAP, [[[[1.0]]]]], BOX, kernel_shape=[31, 31]), "rk3576", "ConvTranspose.kernel"),
        (single("ConvTranspose", [MAP, [[[[1.0]]]]], BOX, kernel_shape=[31, 31]), "rv1126b", ""),
        (single("BatchNormalization", [MAP], MAP, training_mode=1), "rk3588", "BatchNormalization.training"),
    ],
)
def test_single_nodes(builder: Builder, soc: str, refused: str) -> None:
    assert builder.ids(soc) == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("soc", "shape", "refused"),
    [("rk3566", (1, 2, 2, 2, 2, 4), True), ("rk3588", (1, 2, 2, 2, 2, 4), False), ("rk3566", (1, 2, 2, 2, 8), False)],
)
def test_a_rank_6_reshape_that_survives_kills_some_builds(soc: str, shape: Shape, refused: bool) -> None:
    op = Op("Reshape", [Value("x", (1, 64), "float32")], [Value("y", shape, "float32")])
    assert bool(refused_rows([op], get_target(soc))) == refused
