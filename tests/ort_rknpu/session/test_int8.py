"""Int8 numerics: what is quantised, and calibration data that is not fit for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.compare.metrics import measure
from ort_rknpu.errors import CalibrationError
from ort_rknpu.session.calibration import Calibration, CheckedReader, calibration_samples
from ort_rknpu.session.half import CompiledGroup
from ort_rknpu.session.int8 import emulate_int8

RNG = np.random.default_rng(0)


def model() -> onnx.ModelProto:
    """Conv -> Sigmoid -> Mul (one compiled op), Sin on the CPU, Conv."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("Sin", ["m"], ["u"]),
        helper.make_node("Conv", ["u", "w2"], ["y"]),
    ]
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.standard_normal((8, 3, 3, 3)).astype(np.float32) * np.geomspace(0.01, 1, 8).reshape(8, 1, 1, 1),
        "b": rng.standard_normal(8),
        "w2": rng.standard_normal((4, 8, 1, 1)),
    }
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


GROUPS = [
    CompiledGroup("ConvExSwish", "npu", frozenset({"c", "s", "m"})),
    CompiledGroup("Sin", "cpu", frozenset({"u"})),
    CompiledGroup("Conv", "npu", frozenset({"y"})),
]


def session(proto: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


INPUTS = session(model()).get_inputs()


def samples(count: int) -> list[dict[str, np.ndarray]]:
    return [{"x": RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(count)]


def quantized(data: Calibration) -> onnx.ModelProto:
    return emulate_int8(model(), GROUPS, CheckedReader(calibration_samples(data, INPUTS), INPUTS, quiet=True))


def test_npu_ops_are_quantized_per_channel_at_their_boundaries_and_cpu_ops_are_not() -> None:
    proto = quantized(samples(8))
    read_by_sin = next(node.input[0] for node in proto.graph.node if node.op_type == "Sin")
    assert read_by_sin == "m_DequantizeLinear_Output"
    quantize = {node.input[0] for node in proto.graph.node if node.op_type == "QuantizeLinear"}
    assert quantize == {"x", "m", "u", "y_QuantizeLinear_Input"}
    scales = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer if t.name.endswith("_scale")}
    assert scales["w_scale"].shape == (8,)
    assert scales["x_scale"].shape == ()
    zero_points = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer if t.name.endswith("_zero_point")}
    assert zero_points["m_zero_point"] != 0, "SiLU is not symmetric, so neither is its quantisation"


def test_the_result_is_near_float32_and_a_multiple_of_the_scale() -> None:
    feeds = samples(8)
    proto = quantized(feeds)
    expected = session(model()).run(None, feeds[0])[0]
    found = session(proto).run(None, feeds[0])[0]
    metrics = measure(expected, found)
    assert 20 < metrics.sqnr_db < 60
    scale = next(numpy_helper.to_array(t) for t in proto.graph.initializer if t.name == "y_scale")
    steps = found / scale
    assert np.abs(steps - np.round(steps)).max() < 1e-3


def test_a_folder_of_npy_files_is_calibration_data(tmp_path: Path) -> None:
    data = samples(4)
    for number, sample in enumerate(data):
        np.save(tmp_path / f"{number}.npy", sample["x"])
    assert quantized(tmp_path) == quantized(data)


def bad(array: np.ndarray) -> Iterable[dict[str, np.ndarray]]:
    return [*samples(1), {"x": array}]


NAN = np.full((1, 3, 8, 8), np.nan, np.float32)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bad(NAN), "sample 1: input 'x' holds NaN"),
        (bad(np.full_like(NAN, np.inf)), "sample 1: input 'x' holds infinity"),
        (bad(np.zeros((1, 3, 9, 8), np.float32)), r"sample 1: input 'x' has the shape \[1, 3, 9, 8\]"),
        (bad(np.zeros((1, 3, 8, 8))), "sample 1: input 'x' is float64"),
        ([{}], "sample 0: input 'x' is missing"),
        ([{"x": np.ones_like(NAN), "z": NAN}], "sample 0: the model has no input 'z'"),
        ([], "no samples"),
        ([NAN], "a mapping from input names"),
        ("/nonexistent", "is no folder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unfit_calibration_data_is_named(data: Calibration, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        quantized(data)


def test_an_empty_folder_and_a_broken_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="no npz and no npy"):
        quantized(tmp_path)
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(CalibrationError, match=r"cannot read .*a\.npy"):
        quantized(tmp_path)


def test_an_old_opset_is_raised_for_per_channel_weights() -> None:
    old = model()
    old.opset_import[0].version = 11
    proto = emulate_int8(old, GROUPS, CheckedReader(samples(2), INPUTS, quiet=True))
    assert session(proto).run(None, samples(1)[0])[0].shape == (1, 4, 6, 6)
