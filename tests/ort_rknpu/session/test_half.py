"""NPU numerics: what is rounded, where, and that the bits are the simulator's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.compare.metrics import half_ulps
from ort_rknpu.session.half import DISABLED_OPTIMIZERS, OVERFLOW_OUTPUT, CompiledGroup, HalfOptions, emulate_half

SIMULATOR = Path(__file__).parents[2] / "data" / "simulator"


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"], disabled_optimizers=set(DISABLED_OPTIMIZERS)
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int]],
    outputs: Sequence[str],
    constants: dict[str, np.ndarray],
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def npu(*rows: str) -> list[CompiledGroup]:
    """``"ConvRelu: c y"`` is a row ConvRelu that computes the nodes writing c and y."""
    groups = []
    for row in rows:
        op, nodes = row.split(":")
        groups.append(CompiledGroup(op, "npu", frozenset(nodes.split())))
    return groups


def half(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


# case -> rows of the toolkit's layer table, helpers left out; ">" marks rows that read the input through a helper
ROWS: dict[str, list[str]] = {
    "conv": ["Conv: y"],
    "conv_swish": ["ConvExSwish: c s y"],
    "conv_leaky": ["ConvLeakyRelu: c y"],
    "conv_residual": ["ConvAdd: c y"],
    "conv_residual_relu": ["ConvAddRelu: c a y"],
    "conv_mulc": ["Conv: c y"],
    "depthwise_relu": ["ConvRelu: c y"],
    "deconv": ["ConvTranspose: y"],
    "bn": ["Sigmoid: t", "BatchNormalization: y"],
    "divc_vec": ["Sigmoid: t", "Mul: y"],
    "rmean_hw": ["Conv: y"],
    "gap14": ["Conv: y", "Conv: y"],
    "apool": ["AveragePool: y"],
    "apool9": ["Conv: y"],
    "prelu": ["PRelu: y"],
    "matmul_c": [">Conv: t y"],
    "gemm": [">Conv: y"],
    "instnorm": [">exNorm: y", ">Mul: y", ">Add: y"],
    "groupnorm": ["Reshape: g", "exNorm: i", "Reshape: q", "BatchNormalization: m y"],
    "layernorm_4d": [">exNorm: y"],
    "ln_decomposed": [">exNorm: m d q v ve sd n t y"],
    "lstm": ["exLSTM: q y"],
    "gru": ["exGRU: q y"],
    "attention": [">exSDPAttention: s s2 p y"],
    "softmax1": ["exSoftmax13: y"],
    "sum_in_float32": ["Conv: y"],
    "where": ["Sigmoid: t", "Where: y"],
}


@pytest.mark.parametrize("case", ROWS)
def test_each_compiled_form_has_the_simulators_bits(case: str) -> None:
    model = onnx.shape_inference.infer_shapes(onnx.load(SIMULATOR / case / "model.onnx"))
    groups = []
    for row in ROWS[case]:
        (group,) = npu(row.lstrip(">"))
        reads = frozenset({"helper"}) if row.startswith(">") else frozenset()
        groups.append(CompiledGroup(group.op, group.device, group.nodes, reads))
    with np.load(SIMULATOR / case / "io.npz") as data:
        feeds = {key[3:]: data[key] for key in data.files if key.startswith("in_")}
        expected = {key[4:]: data[key] for key in data.files if key.startswith("sim_")}
    found = run(emulate_half(model, groups).model, feeds)
    for name, value in expected.items():
        assert np.array_equal(found[name].reshape(value.shape), value, equal_nan=True), half_ulps(value, found[name])


def scale_chain() -> onnx.ModelProto:
    nodes = [helper.make_node("Mul", ["x", "two"], ["t"]), helper.make_node("Mul", ["t", "z"], ["y"])]
    return model_of(nodes, {"x": [4], "z": [4]}, ["y"], {"two": np.array(2, np.float32)})


def test_overflow_becomes_infinity_and_stays() -> None:
    feeds = {"x": np.array([60000, -60000, 32752, 1], np.float32), "z": np.array([0.5, 0.5, 1, 0.1], np.float32)}
    found = run(emulate_half(scale_chain(), npu("Mul: t", "Mul: y")).model, feeds)["y"]
    assert found.tolist() == [np.inf, -np.inf, 65504, half(np.float32(2) * np.float32(0.1))]


def test_infinity_times_zero_is_nan() -> None:
    feeds = {"x": np.full(4, 60000, np.float32), "z": np.zeros(4, np.float32)}
    assert np.isnan(run(emulate_half(scale_chain(), npu("Mul: t", "Mul: y")).model, feeds)["y"]).all()


def test_saturation_stops_at_the_largest_float16() -> None:
    options = HalfOptions(saturate=True)
    feeds = {"x": np.array([60000, -60000, 3, 1], np.float32), "z": np.full(4, 0.5, np.float32)}
    found = run(emulate_half(scale_chain(), npu("Mul: t", "Mul: y"), options).model, feeds)["y"]
    assert found.tolist() == [32752, -32752, 3, 1]


@pytest.mark.parametrize("saturate", [False, True])
def test_overflows_are_counted_per_tensor(saturate: bool) -> None:
    rewritten = emulate_half(scale_chain(), npu("Mul: t", "Mul: y"), HalfOptions(saturate=saturate, count=True))
    assert rewritten.rounded == ("t", "y")
    feeds = {"x": np.array([60000, -60000, 32760, 32759], np.float32), "z": np.array([1, 0.1, 0.1, 1e3], np.float32)}
    counts = run(rewritten.model, feeds)[OVERFLOW_OUTPUT]
    assert counts.tolist() == [3, 1 if saturate else 4]


def test_no_overflow_counts_as_zero_also_where_the_sum_of_squares_is_large() -> None:
    rewritten = emulate_half(scale_chain(), npu("Mul: t", "Mul: y"), HalfOptions(count=True))
    feeds = {"x": np.full(4, 32752, np.float32), "z": np.ones(4, np.float32)}
    assert run(rewritten.model, feeds)[OVERFLOW_OUTPUT].tolist() == [0, 0]


def test_weights_are_rounded_and_graph_inputs_are_not() -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    model = model_of(nodes, {"x": [1]}, ["y"], {"w": np.array([0.1], np.float32)})
    found = run(emulate_half(model, npu("Mul: y")).model, {"x": np.array([7], np.float32)})["y"]
    assert found[0] == np.float32(0.69970703)
    model = model_of(nodes, {"x": [1]}, ["y"], {"w": np.array([7], np.float32)})
    found = run(emulate_half(model, npu("Mul: y")).model, {"x": np.array([0.1], np.float32)})["y"]
    assert found[0] == np.float32(0.7001953)


def test_a_weight_shared_with_the_cpu_stays_float32_there() -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node("Mul", ["x", "w"], ["z"])]
    model = model_of(nodes, {"x": [1]}, ["y", "z"], {"w": np.array([0.1], np.float32)})
    groups = [*npu("Mul: y"), CompiledGroup("Mul", "cpu", frozenset({"z"}))]
    x = np.array([7], np.float32)
    found = run(emulate_half(model, groups).model, {"x": x})
    assert found["z"][0] == x[0] * np.float32(0.1)
    assert found["y"][0] == np.float32(0.69970703)
    both = run(emulate_half(model, groups, HalfOptions(devices=frozenset({"npu", "cpu"}))).model, {"x": x})
    assert both["z"][0] == np.float32(0.69970703)


def test_a_fused_row_can_be_rounded_once() -> None:
    with np.load(SIMULATOR / "conv_swish" / "io.npz") as data:
        x, simulated = data["in_x"], data["sim_y"]
    model = onnx.shape_inference.infer_shapes(onnx.load(SIMULATOR / "conv_swish" / "model.onnx"))
    rewritten = emulate_half(model, npu("ConvExSwish: c s y"), HalfOptions(fused="once"))
    assert rewritten.rounded == ("y",)
    weight, bias = (numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    c = np.einsum("nchwij,ocij->nohw", windows, half(weight), dtype=np.float64) + bias.reshape(1, -1, 1, 1)
    reference = half((c / (1 + np.exp(-c))).astype(np.float32))
    found = run(rewritten.model, {"x": x})["y"]
    assert half_ulps(reference, found).max() <= 1
    assert half_ulps(simulated, found).max() == 1


def test_weights_kept_outside_the_file_are_rounded_too(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weight = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    model = model_of(nodes, {"x": [1, 64]}, ["y"], {"w": weight})
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="m.data")
    model = onnx.load(path)
    external = onnx.load(path, load_external_data=False)
    rewritten = tmp_path / "rewritten.onnx"
    onnx.save(emulate_half(external, npu("Conv: y")).model, rewritten)
    x = np.ones((1, 64), np.float32)
    session = onnxruntime.InferenceSession(rewritten, providers=["CPUExecutionProvider"])
    inline = run(emulate_half(model, npu("Conv: y")).model, {"x": x})["y"]
    assert np.array_equal(session.run(None, {"x": x})[0], inline)
    assert not np.array_equal(inline, half(x @ weight))


def test_moving_data_costs_no_second_rounding() -> None:
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"]),
        helper.make_node("Concat", ["t", "t"], ["c"], axis=0),
        helper.make_node("Transpose", ["x"], ["u"]),
    ]
    model = model_of(nodes, {"x": [2, 3]}, ["c", "u"], {})
    rounded = emulate_half(model, npu("Sigmoid: s", "Transpose: t", "Concat: c", "Transpose: u")).rounded
    assert rounded == ("s", "u")


def test_a_tensor_read_by_a_subgraph_is_rounded_there_too() -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        node = helper.make_node(op, ["t"], [f"{name}_y"])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [1])])

    nodes = [
        helper.make_node("Mul", ["x", "w"], ["t"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Identity"), else_branch=branch("b", "Neg")),
    ]
    model = model_of(nodes, {"x": [1]}, ["y"], {"w": np.array([7], np.float32)})
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    groups = [*npu("Mul: t"), CompiledGroup("If", "unsupported", frozenset({"y"}))]
    found = run(emulate_half(model, groups).model, {"x": np.array([0.1], np.float32), "c": np.array(True)})["y"]
    assert found[0] == np.float32(0.7001953)


def test_the_given_model_is_not_changed() -> None:
    model = scale_chain()
    before = model.SerializeToString(deterministic=True)
    emulate_half(model, npu("Mul: t", "Mul: y"), HalfOptions(saturate=True, count=True))
    assert model.SerializeToString(deterministic=True) == before
