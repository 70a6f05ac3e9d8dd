"""Native lowering: every ex* operator as the ONNX and ONNX Runtime operators that run fastest."""

from __future__ import annotations

from collections.abc import Callable

from custom_ops.lowering import activations, elementwise, norms, products
from custom_ops.lowering.builder import Builder, Names

__all__ = ["FLOAT32_ONLY", "Builder", "Names", "lower"]

FLOAT32_ONLY = frozenset({"exLSTM", "exGRU"})
"""Operators whose kernel in ONNX Runtime has no float64 form."""

_FUNCTIONS: dict[str, Callable[[Builder, list[str]], list[str]]] = {
    "exSwish": activations.swish,
    "exMish": activations.mish,
    "exGelu": activations.gelu,
    "exGlu": activations.glu,
    "exSoftmax13": activations.softmax,
    "exSoftmaxMask": activations.softmax_mask,
    "exNorm": norms.norm,
    "exMatMul": products.matmul,
    "exSDPAttention": products.attention,
    "exWindow": activations.window,
    "exLSTM": products.lstm,
    "exGRU": products.gru,
    "exHardSwish": activations.hard_swish,
    "exRMSNorm": norms.rms_norm,
    "exLayerNorm": norms.layer_norm,
    "exMeanVarianceNormalization": norms.mean_variance_normalization,
    "exLRN": norms.lrn,
    "exSwooshR": activations.swoosh(1, 0.313261687),
    "exSwooshL": activations.swoosh(4, 0.035),
    **elementwise.LOWERINGS,
}


def lower(op_type: str, builder: Builder, inputs: list[str]) -> list[str]:
    """Writes the nodes of one ex node into ``builder``; returns the names of all outputs of its contract.

    Args:
        op_type: a name in ``OPERATORS``.
        inputs: one name per input that the node lists, ``""`` where omitted.
    """
    return _FUNCTIONS[op_type](builder, inputs)
