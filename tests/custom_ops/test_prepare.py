"""``prepare`` finds ex nodes wherever they are, and refuses with one clear error what it can't run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import custom_ops
from custom_ops import IgnoredAttributeWarning, prepare
from custom_ops.contracts import WITHOUT_SEMANTICS
from custom_ops.errors import ArgumentError, ModelError, OpError, UnknownOpError
from custom_ops.rewrite import Ops
from tests.custom_ops import golden
from tests.custom_ops.models import from_text, one_node, run

BOTH = pytest.mark.parametrize("ops", ["native", "python"])
X = np.random.default_rng(0).standard_normal((1, 8, 4, 6)).astype(np.float32)
SILU = X / (1 + np.exp(-X))


def swish(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x.astype(np.float64)))


@BOTH
@pytest.mark.parametrize("domain", ["", "ai.onnx.contrib", "rknn"])
def test_nodes_of_each_domain_are_found(domain: str, ops: Ops) -> None:
    (y,) = run(one_node("exSwish", {"x": X}, domain=domain), {"x": X}, ops)
    np.testing.assert_allclose(y, SILU, atol=1e-6)


@BOTH
def test_nodes_in_both_branches_of_an_if_are_found(ops: Ops) -> None:
    model = from_text(
        """g (float[1,8,4,6] x, bool c) => (float[1,8,4,6] y) {
            y = If (c) <
                then_branch = t () => (float[1,8,4,6] a) { a = exSwish(x) },
                else_branch = e () => (float[1,8,4,6] b) { h = exHardSwish(x) b = exNorm<mode = "l2">(h) }
            >
        }"""
    )
    (y,) = run(model, {"x": X, "c": np.array(True)}, ops)
    np.testing.assert_allclose(y, SILU, atol=1e-6)
    (y,) = run(model, {"x": X, "c": np.array(False)}, ops)
    hard = X * np.clip(X / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(y, hard / np.sqrt((hard**2).sum(1, keepdims=True)), atol=1e-6)


@BOTH
def test_nodes_in_a_loop_body_inside_an_if_are_found(ops: Ops) -> None:
    model = from_text(
        """g (float[2,4] x, bool c) => (float[2,4] y) {
            n = Constant<value = int64 {3}>()
            y = If (c) <
                then_branch = t () => (float[2,4] a) {
                    a = Loop (n, , x) <
                        body = l (int64 i, bool go, float[2,4] v) => (bool stay, float[2,4] w) {
                            stay = Identity(go) w = exSwish(v)
                        }
                    >
                },
                else_branch = e () => (float[2,4] b) { b = Identity(x) }
            >
        }"""
    )
    x = X[0, :2, 0, :4]
    (y,) = run(model, {"x": x, "c": np.array(True)}, ops)
    np.testing.assert_allclose(y, swish(swish(swish(x))), atol=1e-6)


@BOTH
def test_nodes_in_local_functions_are_found_with_their_attribute_references(ops: Ops) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 19, "own" : 1]>
        g (float[1,8,4,6] x) => (float[1,8,4,6] y) { y = own.outer<b = 0.5>(x) }
        <domain: "own", opset_import: ["" : 19, "own" : 1]>
        outer <b>(v) => (w) { i = own.inner<b: float = @b>(v) w = Relu(i) }
        <domain: "own", opset_import: ["" : 19]>
        inner <b>(v) => (w) { w = exSwish<beta: float = @b>(v) }"""
    )
    (y,) = run(model, {"x": X}, ops)
    np.testing.assert_allclose(y, np.maximum(X / (1 + np.exp(-0.5 * X)), 0), atol=1e-6)


@BOTH
def test_a_local_function_with_an_ex_name_is_the_users_own(ops: Ops) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 19, "rknn" : 1]>
        g (float[1,8,4,6] x) => (float[1,8,4,6] y) { z = rknn.exSwish(x) y = exSwish(z) }
        <domain: "rknn", opset_import: ["" : 19]>
        exSwish (v) => (w) { w = Neg(v) }"""
    )
    (y,) = run(model, {"x": X}, ops)
    np.testing.assert_allclose(y, swish(-X), atol=1e-6)


@BOTH
@pytest.mark.parametrize("case", ["exSwish/silu", "exNorm/layer_3d_wb", "exSDPAttention/scale", "exLSTM/states"])
def test_float16_models_run(case: str, ops: Ops) -> None:
    recorded = golden.load(case)
    model = onnx.load(recorded.fused)
    half = onnx.TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            narrow = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(narrow, tensor.name))
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = half
    feeds: dict[str, np.ndarray | None] = {key: value.astype(np.float16) for key, value in recorded.inputs.items()}
    for value, expected in zip(run(model, feeds, ops), recorded.expected.values()):
        assert value.dtype == np.float16
        np.testing.assert_allclose(value, expected, atol=6e-3)


@BOTH
def test_bfloat16_is_computed_in_float32(ops: Ops) -> None:
    model = from_text(
        """g (float[1,8,4,6] x) => (float[1,8,4,6] y) {
            b = Cast<to = 16>(x) s = exSwish(b) y = Cast<to = 1>(s)
        }"""
    )
    (y,) = run(model, {"x": X}, ops)
    np.testing.assert_allclose(y, SILU, atol=0.03)


@BOTH
def test_symbolic_and_unknown_shapes_run(ops: Ops) -> None:
    model = one_node("exGlu", {"x": X}, {"axis": 1}, dims={"x": ["n", "c", None, "w"]})
    (y,) = run(model, {"x": X}, ops)
    np.testing.assert_allclose(y, X[:, :4] / (1 + np.exp(-X[:, 4:])), atol=1e-6)


@BOTH
def test_an_opset_below_13_is_converted(ops: Ops) -> None:
    text = """g (float[2,3] x) => (float[2,3] y) {{ s = Softmax<axis = 1>(x) {} y = exSoftmax13(s) }}"""
    model = from_text(text.format(""), opset=11)
    (y,) = run(model, {"x": X[0, :2, 0, :3]}, ops)
    (expected,) = run(from_text(text.format(""), opset=19), {"x": X[0, :2, 0, :3]}, ops)
    np.testing.assert_allclose(y, expected, atol=1e-6)


def test_initializers_leave_the_inputs_and_the_source_is_untouched() -> None:
    model = onnx.load(golden.load("exNorm/layer_3d_wb").fused)
    before = model.SerializeToString()
    assert len(model.graph.input) > 1
    assert [value.name for value in prepare(model).graph.input] == ["x"]
    assert model.SerializeToString() == before


def test_new_names_are_traceable_and_unique() -> None:
    model = from_text(
        """g (float[1,8,4,6] x) => (float[1,8,4,6] y) {
            s = exSwish(x) t = exSwish(s) u = Sigmoid(t) y = Add(u, u)
        }"""
    )
    for node, name in zip(model.graph.node, ["/block/act", "/block/act", "/block/act/Sigmoid", ""]):
        node.name = name
    nodes = prepare(model).graph.node
    names = [node.name for node in nodes if node.name]
    assert len(set(names)) == len(names)
    assert sum(name.startswith("/block/act/") for name in names) == 5


def test_a_model_without_ex_nodes_comes_back_as_it_is() -> None:
    model = from_text("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    assert prepare(model).SerializeToString() == model.SerializeToString()


def test_default_mode_leaves_no_custom_op() -> None:
    model = prepare(golden.load("_models/vit").fused)
    assert {entry.domain for entry in model.opset_import} == {""}
    assert not any(node.op_type.startswith("ex") for node in model.graph.node)


def test_ignored_attributes_follow_the_toolkit_with_a_warning() -> None:
    model = one_node("exNorm", {"x": X}, {"mode": "layer", "epsilon": 0.5})
    with pytest.warns(IgnoredAttributeWarning, match="ignores attribute epsilon and uses .*eps=1e-05"):
        (y,) = run(model, {"x": X})
    deviation = X - X.mean(1, keepdims=True)
    np.testing.assert_allclose(y, deviation / np.sqrt((deviation**2).mean(1, keepdims=True) + 1e-5), atol=1e-5)


def broken(op_type: str, shape: tuple[int, ...], attributes: dict[str, Any], *more: np.ndarray) -> onnx.ModelProto:
    inputs = {"x": np.zeros(shape, np.float32), **{f"i{i}": array for i, array in enumerate(more)}}
    return one_node(op_type, inputs, attributes)


W = np.ones((1, 8, 1, 1), np.float32)
WINDOW = {"mode": "partition", "window_sizes": [2, 2], "num_windows": [2, 3]}
LSTM = {
    "batch_size": 1,
    "sequence_size": 5,
    "hidden_size": 4,
    "input_layout": "snc",
    "output_layout": "snc",
}


@BOTH
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (broken("exGlu", (1, 7, 2), {"axis": 1}), r"input X \[1,7,2\] has an odd size along axis 1"),
        (broken("exGlu", (1, 8, 2), {}), "required attribute axis is missing"),
        (broken("exGlu", (1, 8, 2), {"axis": 3}), "axis 3 is out of range for rank 3"),
        (broken("exGlu", (1, 8, 2), {"axis": 1.0}), "attribute axis must be of type int"),
        (broken("exNorm", (1, 8, 4), {}), "required attribute mode is missing"),
        (broken("exNorm", (1, 8, 4), {"mode": "batch"}), "mode is 'batch'; allowed: 'layer', 'mean_var', 'rms'"),
        (broken("exNorm", (1, 8, 4), {"mode": "layer", "axes": [1, -2]}), "axes .* must be distinct"),
        (broken("exNorm", (1, 8, 4), {"mode": "layer"}, W), r"W \[1,8,1,1\] does not broadcast to \[1,8,4\]"),
        (broken("exNorm", (1, 8, 4), {"mode": "layer", "group": 2}), "unknown attribute group; valid: mode, axes, eps"),
        (broken("exSwish", (1, 8), {}, W), "2 inputs given; at most 1: X"),
        (broken("exSoftmaxMask", (1, 8), {"axis": 1, "mask_value": 1}), "required input mask is missing"),
        (broken("exSoftmaxMask", (1, 8), {"axis": 1, "mask_value": 1}, W[0, :, 0, 0]), "mask must be bool, not FLOAT"),
        (broken("exSoftmaxMask", (1, 8), {"axis": 1}, W[0, :, 0, 0] > 0), "required attribute mask_value is missing"),
        (broken("exMatMul", (1, 8, 4), {}, W), r"input A must have rank 4, not \[1,8,4\]"),
        (broken("exMatMul", (1, 7, 1, 4), {}, W), "sizes of A and B along axis 1 differ: 7, 8"),
        (broken("exSDPAttention", (1, 8, 1, 4), {}, W, W[:, :4, :, :0]), "sizes of K and V along axis 3 differ: 1, 0"),
        (broken("exWindow", (1, 8, 4, 4), WINDOW), r"X \[1,8,4,4\] must end in \[4,6\]"),
        (broken("exWindow", (1, 8, 4, 6), {**WINDOW, "num_windows": [2]}), "num_windows must be two positive"),
        (broken("exLSTM", (5, 1, 8), LSTM), "required input W is missing"),
        (broken("exLSTM", (5, 2, 8), LSTM, W[0], W[0]), "batch_size and the size of X along axis 1 differ: 1, 2"),
        (broken("exLSTM", (5, 1, 8), LSTM, W[0], W[0]), r"input W must be \[1,16,8\], not \[8,1,1\]"),
        (broken("exLRN", (1, 8, 4, 6), {"size": 4, "alpha": 1.0, "beta": 1.0, "bias": 1.0}), "size is 4; only odd"),
        (one_node("exSwish", {"x": np.zeros(3, np.int32)}), "input X is INT32; allowed: float32, float16"),
        (one_node("exRMSNorm", {"x": X, "w": X.astype(np.float64)}), "input W is float64, others float32"),
    ],
)
def test_a_broken_contract_is_refused_with_the_node_named(model: onnx.ModelProto, message: str, ops: Ops) -> None:
    with pytest.raises(OpError, match=message) as caught:
        prepare(model, ops)
    assert str(caught.value).startswith("node '/layer/op' (ex")


@BOTH
def test_unknown_operators_are_refused_with_the_known_ones(ops: Ops) -> None:
    with pytest.raises(UnknownOpError, match=r"unknown operator exSwizzle; known: exSwish, exMish"):
        prepare(one_node("exSwizzle", {"x": X}), ops)


@pytest.mark.parametrize("op_type", WITHOUT_SEMANTICS)
def test_operators_without_public_semantics_say_so(op_type: str) -> None:
    with pytest.raises(UnknownOpError, match=f"{op_type} has no public semantics"):
        prepare(one_node(op_type, {"x": X}))


@pytest.mark.parametrize("source", [b"", b"\x08\x08", b"no model at all", onnx.ModelProto()])
def test_what_is_no_model_is_refused(source: bytes | onnx.ModelProto) -> None:
    with pytest.raises(ModelError):
        prepare(source)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    data = golden.load("_models/yolo_like").fused.read_bytes()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        with pytest.raises(ModelError):
            prepare(path)


def test_a_missing_file_and_a_wrong_mode_are_refused() -> None:
    with pytest.raises(ModelError, match=r"cannot read 'nowhere\.onnx'"):
        prepare("nowhere.onnx")
    with pytest.raises(ArgumentError, match="ops is 'fast'; valid: native, python"):
        prepare(golden.load("exSwish/silu").fused, ops="fast")  # type: ignore[arg-type]


def test_public_names_are_exported() -> None:
    assert {"prepare", "register_custom_ops", "last_error"} <= set(custom_ops.__all__)


def test_good_and_bad_models_from_eight_threads_at_once() -> None:
    good = golden.load("_models/vit").fused
    bad: list[tuple[Any, type[Exception]]] = [
        (b"", ModelError),
        (good.read_bytes()[:5000], ModelError),
        (broken("exGlu", (1, 7, 2), {"axis": 1}), OpError),
        (one_node("exSwizzle", {"x": X}), UnknownOpError),
    ]
    expected = prepare(good).SerializeToString(deterministic=True)

    def work(number: int) -> bool:
        if number % 2:
            return all(prepare(good).SerializeToString(deterministic=True) == expected for _ in range(5))
        source, error = bad[number // 2]
        for _ in range(5):
            with pytest.raises(error):
                prepare(source, "python")
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
