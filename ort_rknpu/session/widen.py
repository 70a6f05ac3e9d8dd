"""float16 models in float32: ONNX Runtime's CPU provider has few float16 kernels and fuses roundings away."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.session.proto import subgraphs

_TYPE_ATTRIBUTES = {"Cast": "to", "EyeLike": "dtype", "RandomNormal": "dtype", "RandomUniform": "dtype"}


def widen_half(model: onnx.ModelProto) -> dict[str, str]:
    """Makes every float16 tensor of the main graph and its subgraphs float32, in place.

    Inputs and outputs of the model keep their type, through Casts. Values of float16 initializers do not change;
    results of nodes are no longer rounded.

    Returns:
        The names that nodes now read and write instead of float16 inputs and outputs of the model.
    """
    if not _holds_half(model.graph):
        return {}
    before: list[onnx.NodeProto] = []
    after: list[onnx.NodeProto] = []
    renamed: dict[str, str] = {}
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [v for v in model.graph.input if _is_half(v) and v.name not in constants]
    outputs = [v for v in model.graph.output if _is_half(v)]
    for value in inputs:
        renamed[value.name] = f"{value.name}/float32"
        before.append(_cast(value.name, renamed[value.name], TensorProto.FLOAT))
    for value in outputs:
        if value.name not in renamed:
            renamed[value.name] = f"{value.name}/float32"
        after.append(_cast(renamed[value.name], value.name, TensorProto.FLOAT16))
    _rename(model.graph, renamed)
    _widen(model.graph)
    for value in (*inputs, *outputs):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    nodes = [*before, *model.graph.node, *after]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return renamed


def _is_half(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type == TensorProto.FLOAT16


def _holds_half(graph: onnx.GraphProto) -> bool:
    return (
        any(_is_half(value) for value in (*graph.input, *graph.output, *graph.value_info))
        or any(tensor.data_type == TensorProto.FLOAT16 for tensor in graph.initializer)
        or any(
            (node.op_type == "Cast" and any(a.i == TensorProto.FLOAT16 for a in node.attribute))
            or any(a.t.data_type == TensorProto.FLOAT16 for a in node.attribute)
            or any(_holds_half(inner) for inner in subgraphs(node))
            for node in graph.node
        )
    )


def _cast(source: str, target: str, elem_type: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [target], name=f"{target}/cast", to=elem_type)


def _rename(graph: onnx.GraphProto, renamed: dict[str, str]) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for position, name in enumerate(names):
                names[position] = renamed.get(name, name)
        for inner in subgraphs(node):
            own = {v.name for v in inner.input} | {name for n in inner.node for name in n.output}
            _rename(inner, {old: new for old, new in renamed.items() if old not in own})
            for output in inner.output:
                if output.name not in own:
                    output.name = renamed.get(output.name, output.name)


def _widen(graph: onnx.GraphProto) -> None:
    casts = []
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT16 and tensor.data_location == TensorProto.EXTERNAL:
            casts.append(_cast(f"{tensor.name}/float16", tensor.name, TensorProto.FLOAT))
            tensor.name = casts[-1].input[0]
        else:
            _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if _is_half(value):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == _TYPE_ATTRIBUTES.get(node.op_type) and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
        for inner in subgraphs(node):
            _widen(inner)
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
