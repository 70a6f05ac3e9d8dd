"""The session on every sample model, and each of its rounded ops against numpy."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from models.samples import samples
from ort_rknpu.check import check
from ort_rknpu.compare.metrics import half_ulps
from ort_rknpu.compare.probe import Probe
from ort_rknpu.session.assignment import assign
from ort_rknpu.session.feeds import input_infos, random_feeds
from ort_rknpu.session.half import DISABLED_OPTIMIZERS
from ort_rknpu.session.inference import InferenceSession
from ort_rknpu.session.numerics import npu_model
from ort_rknpu.session.options import PROVIDER, ProviderOptions
from ort_rknpu.session.proto import GraphIndex, node_id
from tests.custom_ops import golden

SAMPLES = samples()
PER_OP = [
    *("conformer_subsampling", "crnn_height48", "deepspeech2_bigru", "face_mesh_regression", "ghostnet_se"),
    *(
        "gmlp_spatial_gate",
        "gpt2_causal_where",
        "mobilenetv3_decomposed_hardswish",
        "plate_lprnet",
        "vit_registers_batch2",
    ),
]
"""Of many families, and small: numpy takes its time."""


def quiet() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return options


@pytest.mark.parametrize("name", SAMPLES)
def test_float32_numerics_equal_stock_onnxruntime(name: str) -> None:
    model = SAMPLES[name].build()
    stock = onnxruntime.InferenceSession(model.SerializeToString(), quiet(), providers=["CPUExecutionProvider"])
    feeds = random_feeds(stock.get_inputs())
    ours = InferenceSession(model, quiet(), providers=[(PROVIDER, {"soc": "rk3588", "numerics": "float32"})])
    assert ours.get_providers() == [PROVIDER, "CPUExecutionProvider"]
    for expected, found in zip(stock.run(None, feeds), ours.run(None, feeds)):
        assert np.array_equal(expected, found, equal_nan=True)


def one_op(model: onnx.ModelProto, index: GraphIndex, tensor: str, known: set[str]) -> onnx.ModelProto:
    """What leads from ``known`` tensors to the value of ``tensor`` before it is rounded."""
    needed: dict[str, onnx.NodeProto] = {}
    waiting = [f"{tensor}/unrounded"]
    while waiting:
        identity = index.producer.get(waiting.pop())
        if identity is not None and identity not in needed:
            needed[identity] = index.nodes[identity]
            waiting.extend(read for read in index.nodes[identity].input if read not in known)
    nodes = [node for node in model.graph.node if node_id(node) in needed]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "one op",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in sorted(read & known)],
        [helper.make_tensor_value_info(f"{tensor}/unrounded", TensorProto.FLOAT, None)],
        [constant for constant in model.graph.initializer if constant.name in read],
    )
    return helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=8)


@pytest.mark.parametrize("name", [*PER_OP, "_models/vit", "_models/yolo_like"])
def test_every_rounded_op_is_within_1_ulp_of_numpy(name: str) -> None:
    """Each rounded tensor against numpy on the very values the session computed it from."""
    model = onnx.load(golden.load(name).fused.with_name("source.onnx")) if "/" in name else SAMPLES[name].build()
    options = ProviderOptions.parse({"soc": "rk3588"})
    assignment = assign(model, options)
    assert assignment.result.partitions == check(model, "rk3588").targets[0].partitions
    built = npu_model(assignment.proto, assignment.groups, assignment.values, options)
    feeds = random_feeds(input_infos(model))
    values = {**feeds, **Probe(built.model, built.rounded, DISABLED_OPTIMIZERS).run(feeds, built.rounded)}
    index = GraphIndex(built.model)
    assert len(built.rounded) > 5
    for tensor in built.rounded:
        part = one_op(built.model, index, tensor, set(values))
        given = {info.name: values[info.name] for info in part.graph.input}
        with np.errstate(all="ignore"):
            reference = ReferenceEvaluator(part).run(None, given)[0].astype(np.float16)
            near = np.abs(reference - values[tensor]) < 1e-6  # sums that cancel have no digits to compare
        assert np.array_equal(values[tensor], values[tensor].astype(np.float16), equal_nan=True), tensor
        same = np.isnan(reference) & np.isnan(values[tensor])
        assert (half_ulps(reference, values[tensor])[~same & ~near] <= 1).all(), tensor
