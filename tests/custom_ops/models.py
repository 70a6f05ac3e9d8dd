"""Small models with ex nodes, and sessions to run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

import custom_ops
from custom_ops.rewrite import Ops

Dims = Sequence[int | str | None]
CPU = ["CPUExecutionProvider"]
ELEMENT = {
    np.dtype(np.float32): onnx.TensorProto.FLOAT,
    np.dtype(np.float64): onnx.TensorProto.DOUBLE,
    np.dtype(np.float16): onnx.TensorProto.FLOAT16,
    np.dtype(np.bool_): onnx.TensorProto.BOOL,
    np.dtype(np.int32): onnx.TensorProto.INT32,
    np.dtype(np.int64): onnx.TensorProto.INT64,
}


def from_text(graph: str, opset: int = 19, **imports: int) -> onnx.ModelProto:
    """A model from ONNX text; further domains as keywords, with ``_`` for a dot."""
    opsets = [onnx.helper.make_opsetid("", opset)]
    opsets += [onnx.helper.make_opsetid(domain.replace("_", "."), version) for domain, version in imports.items()]
    return onnx.helper.make_model(onnx.parser.parse_graph(graph), opset_imports=opsets, ir_version=8)


def one_node(
    op_type: str,
    inputs: Mapping[str, np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    constants: Sequence[str] = (),
    outputs: int = 1,
    domain: str = "",
    opset: int = 19,
    dims: Mapping[str, Dims] | None = None,
    name: str = "/layer/op",
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        inputs: per input of the node an array that gives shape and dtype; None omits it.
        constants: which of them are initializers.
        dims: other dimensions to declare for an input, for example symbolic ones.
    """
    values, initializers = [], []
    element = next(ELEMENT[a.dtype] for a in inputs.values() if a is not None)
    for key, array in inputs.items():
        if array is not None and key in constants:
            initializers.append(onnx.numpy_helper.from_array(array, key))
        elif array is not None:
            shape = (dims or {}).get(key, array.shape)
            values.append(onnx.helper.make_tensor_value_info(key, ELEMENT[array.dtype], shape))
    names = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(
        op_type,
        ["" if array is None else key for key, array in inputs.items()],
        names,
        name=name,
        domain=domain,
        **(attributes or {}),
    )
    results = [onnx.helper.make_tensor_value_info(key, element, None) for key in names]
    graph = onnx.helper.make_graph([node], "one", values, results, initializers)
    opsets = [onnx.helper.make_opsetid("", opset)]
    if domain:
        opsets.append(onnx.helper.make_opsetid(domain, 1))
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def session(model: onnx.ModelProto, ops: Ops = "native") -> onnxruntime.InferenceSession:
    """onnxruntime's own session for the prepared model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if ops == "python":
        custom_ops.register_custom_ops(options)
    prepared = custom_ops.prepare(model, ops)
    return onnxruntime.InferenceSession(prepared.SerializeToString(), options, providers=CPU)


def run(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray | None], ops: Ops = "native") -> list[np.ndarray]:
    """The outputs for those ``feeds`` that are inputs of the model."""
    made = session(model, ops)
    return made.run(None, {i.name: feeds[i.name] for i in made.get_inputs()})
