"""Random weights for models that carry none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.vendor.fill import fill_stubs, has_stubs, random_inputs


def _stub(name: str, dtype: int, shape: tuple[int, ...]) -> TensorProto:
    tensor = TensorProto(name=name, data_type=dtype, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="absent.bin")
    return tensor


def _model() -> onnx.ModelProto:
    names = ("scale", "bias", "mean", "variance")
    graph = helper.make_graph(
        [helper.make_node("BatchNormalization", ["x", *names], ["y"], "bn")],
        "bn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 400, 4, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 400, 4, 4))],
        [_stub(name, TensorProto.FLOAT, (400,)) for name in names],
    )
    return helper.make_model(graph)


def test_stubs_become_random_numbers_and_variances_are_positive(tmp_path: Path) -> None:
    model = _model()
    assert has_stubs(model, tmp_path)
    filled = fill_stubs(model, tmp_path)
    assert not has_stubs(filled, tmp_path)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in filled.graph.initializer}
    assert (arrays["variance"] >= 0.5).all()
    assert (arrays["mean"] < 0).any()
    assert all(np.unique(array).size > 300 for array in arrays.values())


def test_external_data_that_is_there_is_read(tmp_path: Path) -> None:
    model = _model()
    bias = next(tensor for tensor in model.graph.initializer if tensor.name == "bias")
    bias.external_data[0].value = "bias.bin"
    numbers = np.arange(400, dtype=np.float32)
    numbers.tofile(tmp_path / "bias.bin")
    filled = {tensor.name: tensor for tensor in fill_stubs(model, tmp_path).graph.initializer}
    assert np.array_equal(numpy_helper.to_array(filled["bias"]), numbers)


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    first, second = (fill_stubs(_model(), tmp_path, seed=3).SerializeToString() for _ in range(2))
    assert first == second
    assert first != fill_stubs(_model(), tmp_path, seed=4).SerializeToString()


def test_eight_bit_stubs_use_the_whole_range(tmp_path: Path) -> None:
    model = _model()
    model.graph.initializer.append(_stub("w", TensorProto.INT8, (64, 64)))
    values = numpy_helper.to_array(fill_stubs(model, tmp_path).graph.initializer[-1])
    assert (values.min(), values.max()) == (-128, 127)


def test_inputs_are_normal_and_integers_are_valid_indices() -> None:
    model = _model()
    model.graph.input.append(helper.make_tensor_value_info("ids", TensorProto.INT64, (1, 64)))
    feed = random_inputs(model)
    assert feed["x"].shape == (2, 400, 4, 4)
    assert abs(feed["x"].std() - 1) < 0.05
    assert set(np.unique(feed["ids"])) == {0, 1}
