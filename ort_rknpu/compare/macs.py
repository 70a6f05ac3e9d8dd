"""Multiply-accumulate operations of a node, from its shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx

from ort_rknpu.session.proto import GraphIndex, attribute


def node_macs(index: GraphIndex, node: onnx.NodeProto) -> int | None:
    """Multiply-accumulates of convolutions, matrix products, recurrent layers and attention; 0 for other ops.

    None where a shape it takes is not known.
    """
    rule = _RULES.get(node.op_type)
    if rule is None:
        return 0
    shapes = [index.shape(name) if name else () for name in node.input]
    output = index.shape(node.output[0])
    if output is None or any(shape is None for shape in shapes[:3]):
        return None
    return rule(node, [shape or () for shape in shapes], output)


def _conv(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    return math.prod(output) * math.prod(shapes[1][1:])


def _conv_transpose(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    return math.prod(shapes[0]) * math.prod(shapes[1][1:])


def _matmul(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    return math.prod(output) * (shapes[0][-1] if shapes[0] else 0)


def _gemm(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    return math.prod(output) * shapes[0][0 if attribute(node, "transA", 0) else 1]


def _ex_matmul(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    return math.prod(output) * shapes[0][1]


def _ex_attention(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    query, key = shapes[0], shapes[1]
    return math.prod(query) * key[3] + math.prod(output) * key[3]


def _recurrent(node: onnx.NodeProto, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> int:
    steps = math.prod(shapes[0][:2])
    if attribute(node, "input_layout") == b"(sn)c":
        steps = shapes[0][0]
    return steps * (math.prod(shapes[1]) + math.prod(shapes[2]))


_RULES: dict[str, Callable[[onnx.NodeProto, list[tuple[int, ...]], tuple[int, ...]], int]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "RNN": _recurrent,
    "exGRU": _recurrent,
    "exLSTM": _recurrent,
    "exMatMul": _ex_matmul,
    "exSDPAttention": _ex_attention,
}
