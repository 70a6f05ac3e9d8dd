"""``diff``: the dump of a model against the model."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.compare.diff import diff
from ort_rknpu.errors import ModelError
from tests.custom_ops import golden

PAIRS = [name for name in golden.names() if (golden.ROOT / name / "source.onnx").exists()]
DIFFERENT = {
    "exSDPAttention/MISMATCH_mask_then_scale": ("exSDPAttention", 2.43),
    "exSoftmaxMask/all_masked_-inf": ("exSoftmaxMask", np.inf),
}


@pytest.mark.parametrize("name", PAIRS)
def test_dumps_of_the_toolkit_mean_what_the_source_means_but_for_its_known_bugs(name: str) -> None:
    case = golden.load(name)
    found = diff(case.fused.with_name("source.onnx"), case.fused, case.inputs)
    if name not in DIFFERENT:
        assert not found.differs
        assert found.first is None
        return
    op_type, size = DIFFERENT[name]
    assert found.differs
    assert found.first is not None
    assert (found.first.tensor, found.first.op_type) == ("y", op_type)
    assert found.first.max_abs == pytest.approx(size, rel=1e-2)


def test_a_wrong_mask_shows_on_random_inputs_too() -> None:
    case = golden.load("exSDPAttention/MISMATCH_mask_then_scale")
    found = diff(case.fused.with_name("source.onnx"), case.fused, seed=3)
    assert found.differs
    assert str(found).startswith("DIFFERENT: y differs by up to")


def test_the_tanh_form_of_gelu_is_a_small_difference() -> None:
    case = golden.load("exGelu/tanh_source")
    found = diff(case.fused.with_name("source.onnx"), case.fused, case.inputs)
    assert not found.differs
    (small,) = found.tensors
    assert (small.op_type, small.significant) == ("exGelu", False)
    assert small.max_abs == pytest.approx(4.7e-4, rel=0.1)
    assert diff(case.fused.with_name("source.onnx"), case.fused, case.inputs, rtol=1e-4, atol=1e-4).differs


def test_an_inner_tensor_that_differs_is_found_before_the_output() -> None:
    case = golden.load("_models/yolo_like")
    source, dump = onnx.load(case.fused.with_name("source.onnx")), onnx.load(case.fused)
    weight = next(tensor for tensor in dump.graph.initializer if tensor.name == "m.0.weight")
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.5), weight.name))
    found = diff(source, dump, case.inputs)
    assert found.first is not None
    assert (found.first.tensor, found.first.node) == ("/m/m.0/Conv_output_0", "/m/m.0/Conv")
    assert [tensor.tensor for tensor in found.tensors if tensor.significant] == ["/m/m.0/Conv_output_0"]
    assert json.loads(found.to_json())["tensors"][0]["node"] == "/m/m.0/Conv"


def test_masks_of_other_very_negative_numbers_are_no_difference() -> None:
    def masked(fill: float) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Where", ["c", "x", "fill"], ["w"]),
            helper.make_node("Softmax", ["w"], ["y"], axis=-1),
        ]
        mask = np.arange(8) < 5
        constants = [
            numpy_helper.from_array(mask, "c"),
            numpy_helper.from_array(np.array(fill, np.float32), "fill"),
        ]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in "xy"]
        graph = helper.make_graph(nodes, "masked", values[:1], values[1:], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    found = diff(masked(-3.4e38), masked(-1e4))
    assert not found.differs
    assert found.tensors == ()


def test_models_that_are_no_pair_are_refused() -> None:
    vit, yolo = golden.load("_models/vit").fused, golden.load("_models/yolo_like").fused
    with pytest.raises(ModelError, match="shape"):
        diff(vit, yolo, {"x": np.zeros((1, 3, 5, 5), np.float32)})
    other = helper.make_model(
        helper.make_graph(
            [helper.make_node("Neg", ["z"], ["y"])],
            "other",
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        )
    )
    with pytest.raises(ModelError, match="its inputs are z, not x"):
        diff(vit, other)
    other.graph.node[0].output[0] = other.graph.output[0].name = "w"
    other.graph.node[0].input[0] = other.graph.input[0].name = "x"
    with pytest.raises(ModelError, match="lacks the output 'y'"):
        diff(vit, other)
