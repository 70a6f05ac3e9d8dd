"""Other back ends' operators in the project's own session."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import ort_rknpu
from ort_rknpu.errors import OpRuntimeError
from tests.ort_rknpu.graphs import make_model, tensor


def _session(model: onnx.ModelProto, ops: str) -> ort_rknpu.InferenceSession:
    options = {"soc": "rk3588", "numerics": "float32", "ops": ops}
    return ort_rknpu.InferenceSession(
        model.SerializeToString(), providers=[("RknpuExecutionProvider", options), "CPUExecutionProvider"]
    )


def _import(model: onnx.ModelProto) -> onnx.ModelProto:
    model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in ("tensorrt", "directml", "openvino"))
    return model


@pytest.mark.parametrize("ops", ["native", "python"])
def test_operators_of_three_back_ends_run_in_one_model(ops):
    nodes = [
        helper.make_node("ElementWise", ["x", "s"], ["p"], name="divide", domain="tensorrt", operation="FLOOR_DIV"),
        helper.make_node("ElementWiseMultiply", ["p", "p"], ["q"], name="square", domain="directml"),
        helper.make_node("Less", ["q", "t"], ["l"], name="less", domain="openvino", auto_broadcast="pdpd", axis=0),
    ]
    scale = np.array([[2, -2, 3, 0.5]], np.float32)
    limit = np.array([9, 4], np.float32)
    weights = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(limit, "t")]
    model = _import(make_model(nodes, [tensor("x", [2, 4])], ["q", "l"], weights))
    x = np.array([[5, 5, -5, 1.2], [1, 7, 8, -0.7]], np.float32)
    q, less = _session(model, ops).run(None, {"x": x})
    np.testing.assert_array_equal(q, np.floor(x / scale) ** 2)
    np.testing.assert_array_equal(less, q < limit[:, None])


@pytest.mark.parametrize(
    ("op_type", "domain", "attributes", "message"),
    [
        ("ElementWise", "tensorrt", {"operation": "SUM"}, "rank of the inputs: 2 and 1"),
        ("ElementWiseMultiply", "directml", {}, "equal ranks"),
        ("Less", "openvino", {"auto_broadcast": "none"}, "equal ranks"),
    ],
)
def test_shapes_that_do_not_fit_at_run_time_raise_from_run(op_type, domain, attributes, message):
    node = helper.make_node(op_type, ["x", "y"], ["z"], name="n", domain=domain, **attributes)
    session = _session(_import(make_model([node], [tensor("x"), tensor("y")], ["z"])), "python")
    with pytest.raises(OpRuntimeError, match=rf"'n' \({op_type}\).*{message}"):
        session.run(None, {"x": np.ones((2, 3), np.float32), "y": np.ones(3, np.float32)})
    (value,) = session.run(None, {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)})
    assert value.shape == (2, 3)
