"""``compare``: where NPU numerics part from float32, by how much, and what partitions cost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.check import check
from ort_rknpu.compare.compare import compare
from ort_rknpu.compare.extract import extract
from ort_rknpu.compare.macs import node_macs
from ort_rknpu.errors import CalibrationError, ModelError, OptionError
from ort_rknpu.session.proto import GraphIndex
from tests.custom_ops import golden

YOLO = golden.load("_models/yolo_like").fused.with_name("source.onnx")


def cancelling(offset: float) -> onnx.ModelProto:
    """Sigmoid, plus and minus ``offset`` around a Relu, Sin on the CPU: fp16 loses what ``offset`` covers."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["a"], "sigmoid"),
        helper.make_node("Add", ["a", "offset"], ["b"], "plus"),
        helper.make_node("LeakyRelu", ["b"], ["c"], "relu", alpha=0.1),
        helper.make_node("Sub", ["c", "offset"], ["d"], "minus"),
        helper.make_node("Tanh", ["d"], ["e"], "tanh"),
        helper.make_node("Sin", ["e"], ["y"], "sin"),
    ]
    graph = helper.make_graph(
        nodes,
        "cancelling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 16, 16])],
        [numpy_helper.from_array(np.array(offset, np.float32), "offset")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_node_where_drift_starts_is_named_and_leads_the_contributors() -> None:
    found = compare(cancelling(512.0), "rk3588", batches=2)
    npu, cpu = found.partitions
    assert (npu.device, cpu.device) == ("npu", "cpu")
    assert npu.drift is not None
    assert (npu.drift.node, npu.drift.tensor) == ("minus", "d")
    assert npu.drift.inputs_db > 40 > npu.drift.sqnr_db
    assert cpu.drift is None, "what the CPU reads has drifted before"
    assert found.contributors[0].node == "minus"
    assert found.batches == 2
    assert "drifts from node 'minus' on" in str(found)


def test_without_drift_none_is_named() -> None:
    found = compare(cancelling(0.5), "rk3588")
    assert all(partition.drift is None for partition in found.partitions)
    assert found.outputs[0].metrics.sqnr_db > 60


def test_overflow_is_counted_and_blamed_on_the_op_where_it_begins() -> None:
    found = compare(cancelling(70000.0), "rk3588")
    (output,) = found.outputs
    assert output.metrics.nans == output.metrics.elements
    first = found.contributors[0]
    assert (first.node, first.overflows) == ("plus", 8 * 16 * 16)
    assert found.partitions[0].drift is not None
    assert found.partitions[0].drift.node == "plus"
    assert json.loads(found.to_json())["outputs"][0]["max_abs"] == "inf"


def test_partitions_are_those_of_check_with_boundaries_time_and_macs() -> None:
    found = compare(YOLO, "rk3566")
    report = check(YOLO, "rk3566").targets[0]
    assert [(p.id, p.device) for p in found.partitions] == [(p.id, p.device) for p in report.partitions]
    assert sum(p.macs or 0 for p in found.partitions) == 239_616
    assert found.partitions[0].float32_ms > 0
    assert found.partitions[0].emulated_ms > 0
    assert [tensor.name for tensor in found.partitions[0].outputs] == ["/d/Conv_output_0"]
    for partition in found.partitions:
        assert all(tensor.metrics.sqnr_db > 60 for tensor in partition.outputs)
    text = str(found)
    assert text.startswith("source.onnx on rk3566 fp16 against float32, 1 batch; worst output y with ")
    assert "NPU and CPU" in text


def test_several_inputs_are_measured_together() -> None:
    rng = np.random.default_rng(0)
    samples = [{"x": rng.standard_normal((1, 3, 32, 32)).astype(np.float32)} for _ in range(3)]
    found = compare(YOLO, "rk3588", samples)
    assert found.batches == 3
    assert found.outputs[0].metrics.elements == 3 * 4 * 64
    worst = max(compare(YOLO, "rk3588", sample).outputs[0].metrics.max_abs for sample in samples)
    assert found.outputs[0].metrics.max_abs == pytest.approx(worst)


def test_int8_is_compared_with_calibration_data_alone() -> None:
    rng = np.random.default_rng(0)
    samples = [{"x": rng.standard_normal((1, 3, 32, 32)).astype(np.float32)} for _ in range(8)]
    found = compare(YOLO, "rk3588", precision="int8", calibration=samples)
    assert 15 < found.outputs[0].metrics.sqnr_db < 60
    assert found.contributors
    with pytest.raises(CalibrationError, match="calibration"):
        compare(YOLO, "rk3588", precision="int8")


def test_a_float16_model_is_compared_with_its_float32_twin() -> None:
    model = cancelling(0.5)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    x = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float16)
    half = compare(model, "rk3588", {"x": x}).outputs[0].metrics
    single = compare(cancelling(0.5), "rk3588", {"x": x.astype(np.float32)}).outputs[0].metrics
    assert half.sqnr_db == pytest.approx(single.sqnr_db, abs=0.1)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(OptionError, match="rk3588"):
        compare(YOLO, "rk9")
    with pytest.raises(ModelError, match="no inputs given"):
        compare(YOLO, "rk3588", [])
    with pytest.raises(ModelError, match="no input 'z'; it has x"):
        compare(YOLO, "rk3588", {"z": np.zeros(1, np.float32)})


def test_macs_follow_from_shapes() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], group=2),
        helper.make_node("ConvTranspose", ["x", "t"], ["b"], strides=[2, 2]),
        helper.make_node("MatMul", ["x", "m"], ["c"]),
        helper.make_node("Gemm", ["g", "h"], ["d"], transA=1),
        helper.make_node("Relu", ["x"], ["e"]),
    ]
    shapes = {"x": [1, 4, 8, 8], "w": [6, 2, 3, 3], "t": [4, 5, 2, 2], "m": [8, 10], "g": [7, 3], "h": [7, 2]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "abcde"]
    model = onnx.shape_inference.infer_shapes(helper.make_model(helper.make_graph(nodes, "macs", inputs, outputs)))
    index = GraphIndex(model)
    counts = [node_macs(index, node) for node in model.graph.node]
    assert counts == [6 * 6 * 6 * 2 * 9, 4 * 8 * 8 * 5 * 4, 4 * 8 * 10 * 8, 3 * 2 * 7, 0]


def test_a_partition_is_written_with_its_boundary(tmp_path: Path) -> None:
    written = tmp_path / "p.onnx"
    model = extract(YOLO, 1, written, soc="rk3566")
    assert onnx.load(written) == model
    assert [value.name for value in model.graph.input] == ["/d/Conv_output_0"]
    onnx.checker.check_model(model)
    with pytest.raises(OptionError, match="no partition 77"):
        extract(YOLO, 77, soc="rk3566")
