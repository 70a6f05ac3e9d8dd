"""Matrix products, attention and recurrent layers as ONNX operators."""

from __future__ import annotations

from typing import Any

from custom_ops.lowering.builder import Builder

Inputs = list[str]


def matmul(b: Builder, inputs: Inputs) -> list[str]:
    """Transpose and MatMul on rank 3, which ONNX Runtime fuses; axis 2 always has size 1.

    A constant right side of batch size 1 has rank 2: only then is it packed once, when the session is made.
    """
    left, right, extra = (*inputs, "")[:3]
    a, c = b.shapes[:2]
    if a is not None and a[3] == 1:
        rows = b.unsqueeze(b.squeeze(left, 2, 3), 1)
    else:
        rows = b.transpose(b.squeeze(left, 2), 0, 2, 1)
    packed = 1 in b.constants and c is not None and c[0] == 1 and c[3] != 1
    y = b.unsqueeze(b.call("MatMul", rows, b.squeeze(right, *((0, 2) if packed else (2,)))), 2)
    if not extra:
        return [y]
    return [b.call("Mul" if b.attributes["c_type"] == "mul" else "Add", y, extra)]


def attention(b: Builder, inputs: Inputs) -> list[str]:
    """Two MatMuls around a softmax over the keys."""
    q, k, v, mask = (*inputs, "")[:4]
    scores = b.call("MatMul", b.transpose(b.squeeze(q, 2), 0, 2, 1), b.squeeze(k, 2))
    if b.attributes["scale"] != 1:
        scores = b.call("Mul", scores, b.scalar(b.attributes["scale"], "scale"))
    if mask:
        scores = b.call("Add", scores, b.transpose(_mask_matrix(b, mask), 0, 2, 1))
    weights = b.call("Softmax", scores, axis=-1)
    product = b.call("MatMul", weights, b.transpose(b.squeeze(v, 2), 0, 2, 1))
    return [b.unsqueeze(b.transpose(product, 0, 2, 1), 2)]


def _mask_matrix(b: Builder, mask: str) -> str:
    """The mask as [1|b, k|1, q|1]; a lower rank is broadcast like numpy does."""
    shape = b.shapes[3]
    rank = 4 if shape is None else len(shape)
    if rank < 4:
        mask = b.unsqueeze(mask, *range(4 - rank))
    return b.squeeze(mask, 2)


def lstm(b: Builder, inputs: Inputs) -> list[str]:
    """LSTM and the layouts around it."""
    return _recurrent(b, inputs, "LSTM", 3)


def gru(b: Builder, inputs: Inputs) -> list[str]:
    """GRU and the layouts around it."""
    return _recurrent(b, inputs, "GRU", 2, linear_before_reset=b.attributes["linear_before_reset"])


def _recurrent(b: Builder, inputs: Inputs, op_type: str, outputs: int, **own: Any) -> list[str]:
    seq, batch, hidden = (b.attributes[name] for name in ("sequence_size", "batch_size", "hidden_size"))
    direction, layout = b.attributes["direction"], b.attributes["output_layout"]
    directions = 2 if direction == "bidirectional" else 1
    x = inputs[0]
    if b.attributes["input_layout"] == "(sn)c":
        x = b.reshape(x, (seq, batch, -1))
    y, *states = b.call(op_type, x, *inputs[1:], outputs=outputs, hidden_size=hidden, direction=direction, **own)
    if layout != "sbnc":
        y = b.squeeze(y, 1) if directions == 1 else b.reshape(b.transpose(y, 0, 2, 1, 3), (0, 0, directions * hidden))
    if layout == "(sn)c":
        y = b.reshape(y, (seq * batch, directions * hidden, 1, 1))
    return [y, *states]
