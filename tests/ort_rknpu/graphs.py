"""Small models for tests, built from nodes."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper


def tensor(
    name: str, shape: list[int | str | None] | None = None, dtype: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    """A typed graph input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[str],
    initializers: list[onnx.TensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model whose outputs are declared by name only; ``local`` is the domain of its functions."""
    graph = helper.make_graph(
        nodes, "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers or []
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [], ir_version=9)
