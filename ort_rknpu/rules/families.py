"""Which module answers for which entry: its named values, its named predicates."""

from __future__ import annotations

from collections.abc import Callable

from ort_rknpu.graph import Op
from ort_rknpu.rules import (
    activation,
    attention,
    broadcast,
    conv,
    layout,
    norm,
    pool,
    resize,
    rnn,
    slicing,
    softmax,
    transpose,
)
from ort_rknpu.rules.attributes import check_attributes
from ort_rknpu.rules.facts import Values, base_values
from ort_rknpu.rules.finding import Form

VALUES: dict[str, Callable[[Op], Values]] = {
    "Conv": conv.conv_values,
    "DepthwiseConv": conv.conv_values,
    "ConvTranspose": conv.conv_values,
    "exConvStreaming": conv.conv_values,
    "MaxPool": pool.pool_values,
    "AveragePool": pool.pool_values,
    "Add": broadcast.elementwise_values,
    "Sub": broadcast.elementwise_values,
    "Mul": broadcast.elementwise_values,
    "Div": broadcast.elementwise_values,
    "Max": broadcast.elementwise_values,
    "Min": broadcast.elementwise_values,
    "Greater": broadcast.elementwise_values,
    "Where": broadcast.elementwise_values,
    "Transpose": transpose.transpose_values,
    "Resize": resize.resize_values,
    "Slice": slicing.slice_values,
    "GRU": rnn.rnn_values,
    "LSTM": rnn.rnn_values,
    "Softmax": softmax.softmax_values,
    "exSoftmax13": softmax.softmax_values,
    "exSoftmaxMask": softmax.softmax_values,
    "Hardmax": softmax.softmax_values,
    "BatchNormalization": norm.batch_norm_values,
    "exNorm": norm.norm_values,
    "exMatMul": attention.matmul_values,
    "exSDPAttention": attention.attention_values,
    "Concat": layout.axis_values,
    "Split": layout.axis_values,
    "Gather": layout.axis_values,
    "exGlu": layout.glu_values,
    "Pad": layout.pad_values,
    "exWindow": layout.window_values,
    "HardSigmoid": activation.alpha_values,
    "Elu": activation.alpha_values,
    "Clip": activation.clip_values,
    "Pow": activation.pow_values,
}
"""Entry -> the values its limits read. Entries not named here read the shape alone."""

CONVERTED: dict[str, Callable[[Op], Values]] = {
    "AveragePool": pool.pool_as_conv_values,
    "GlobalAveragePool": pool.pool_as_conv_values,
}
"""The same for an op that the toolkit converts and that another entry judges."""

FORMS: dict[str, Form] = {
    "broadcast": broadcast.broadcast,
    "first_layer": conv.first_layer,
    "full_sequence": rnn.full_sequence,
    "perm_table": transpose.perm_table,
    "resize_scale": resize.resize_scale,
    "slice_steps": slicing.slice_steps,
    "slope": activation.slope,
    "swap_passes": transpose.swap_passes,
}
"""The predicates that rule files name as ``form``."""


def values_of(op: Op, entry: str, converted: bool = False) -> Values:
    """The named values of ``op`` for the entry that judges it.

    Raises:
        ModelError: an attribute is of another kind or length than ONNX defines.
    """
    check_attributes(op)
    return (CONVERTED if converted else VALUES).get(entry, base_values)(op)
