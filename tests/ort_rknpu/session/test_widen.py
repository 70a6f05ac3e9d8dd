"""float16 models computed in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.session.half import CompiledGroup, emulate_half
from ort_rknpu.session.widen import widen_half


def half_model() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["t"]),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["f"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["h", "x"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [2])],
        [numpy_helper.from_array(np.array(0.1, np.float16), "k")],
    )
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )


def test_inputs_and_outputs_stay_float16_and_every_npu_op_rounds() -> None:
    model = half_model()
    renamed = widen_half(model)
    groups = [CompiledGroup("Mul", "npu", frozenset({renamed.get(name, name)})) for name in ("t", "y")]
    proto = emulate_half(model, groups).model
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.array([3.3, 60000], np.float16)
    found = session.run(None, {"x": x})[0]
    assert found.dtype == np.float16
    with np.errstate(over="ignore"):
        assert np.array_equal(found, (x * np.float16(0.1)) * x)


def test_float16_weights_outside_the_file_are_read_through_a_cast(tmp_path: Path) -> None:
    model = half_model()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
    external = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    widen_half(external)
    onnx.save(external, tmp_path / "wide.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "wide.onnx", providers=["CPUExecutionProvider"])
    x = np.array([2, 3], np.float16)
    assert np.allclose(session.run(None, {"x": x})[0], [0.4, 0.9], rtol=2e-3)


def test_a_float32_model_is_left_alone() -> None:
    node = helper.make_node("Neg", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "single", values[:1], values[1:]))
    before = model.SerializeToString()
    assert widen_half(model) == {}
    assert model.SerializeToString() == before
