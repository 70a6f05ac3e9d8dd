"""One contract per ex* operator, as data; schemas, checks, shapes, Python ops, lowering and the docs follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttributeType = Literal["int", "float", "string", "ints"]
AttributeValue = int | float | str | tuple[int, ...]

SOURCE_DOMAINS: tuple[str, ...] = ("", "ai.onnx.contrib", "rknn")
"""Domains in which an ex* node is taken for the toolkit's operator; the toolkit itself writes the first."""


FLOATING: tuple[str, ...] = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Input:
    """One input: ``T`` (a floating type), ``bool`` or ``int32``; ``shape`` in the contract's own letters."""

    name: str
    shape: str
    type: Literal["T", "bool", "int32"] = "T"
    optional: bool = False


@dataclass(frozen=True)
class Output:
    """One output, of type ``T``, ``bool``, or either, as the operation says."""

    name: str
    shape: str
    type: Literal["T", "bool", "T or bool"] = "T"
    optional: bool = False


@dataclass(frozen=True)
class Attribute:
    """One attribute; without a default it is required. ``allowed`` lists the valid values, empty for any."""

    name: str
    type: AttributeType
    default: AttributeValue | None = None
    allowed: tuple[AttributeValue, ...] = ()


@dataclass(frozen=True)
class Contract:
    """What one operator takes, computes and where that is known from.

    Attributes:
        name: the op_type.
        formula: what it computes, in the names of its inputs and attributes.
        source: ``measured 2.3.2`` (the toolkit's dumps, golden results and simulator) or the section of the
            V2.3.2 operator list where only that tells.
        dumped: whether the toolkit writes it into ``check3_fuse_ops.onnx`` on its own.
        ignored: attribute names seen in the wild which the toolkit silently ignores.
        domain: where the operator lives; ``""`` stands for ``SOURCE_DOMAINS``.
        types: what ``T`` may be.
        usual_inputs: how many inputs nodes in dumps mostly list, where that is more than the required ones.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    attributes: tuple[Attribute, ...]
    formula: str
    source: str = "measured 2.3.2"
    dumped: bool = False
    ignored: tuple[str, ...] = ()
    domain: str = ""
    types: tuple[str, ...] = FLOATING
    usual_inputs: int = 0

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains in which a node is taken for this operator."""
        return (self.domain,) if self.domain else SOURCE_DOMAINS

    @property
    def computed_types(self) -> tuple[str, ...]:
        """What ``T`` is computed in: ``types`` but float16 and bfloat16, which are computed in float32."""
        return tuple(name for name in self.types if name not in ("float16", "bfloat16"))

    def booleans(self, comparison: bool) -> tuple[bool, ...]:
        """Per output, whether it is bool whatever ``T`` is; ``comparison``: whether the operation compares."""
        return tuple(o.type == "bool" or (o.type == "T or bool" and comparison) for o in self.outputs)

    @property
    def min_inputs(self) -> int:
        """How many inputs a node must list at least."""
        return sum(not i.optional for i in self.inputs)

    @property
    def min_outputs(self) -> int:
        """How many outputs a node must list at least."""
        return sum(not o.optional for o in self.outputs)

    @property
    def single_signature(self) -> bool:
        """Whether every node has the same inputs, outputs and attributes, so that one Python op serves them all."""
        optional = any(i.optional for i in self.inputs) or any(o.optional for o in self.outputs)
        return not self.attributes and not optional


_ANY = Input("X", "any")
_SAME = Output("Y", "as X")
_LAYOUTS_IN = ("snc", "(sn)c")
_LAYOUTS_OUT = ("snc", "sbnc", "(sn)c")


def _recurrent_attributes(*own: Attribute) -> tuple[Attribute, ...]:
    return (
        Attribute("batch_size", "int"),
        Attribute("sequence_size", "int"),
        Attribute("hidden_size", "int"),
        Attribute("input_layout", "string", None, _LAYOUTS_IN),
        Attribute("output_layout", "string", None, _LAYOUTS_OUT),
        Attribute("direction", "string", "forward", ("forward", "reverse", "bidirectional")),
        *own,
    )


def _recurrent_inputs(gates: int) -> tuple[Input, ...]:
    return (
        Input("X", "[S,N,I], or [S*N,I,1,1] for layout (sn)c"),
        Input("W", f"[D,{gates}H,I]"),
        Input("R", f"[D,{gates}H,H]"),
        Input("B", f"[D,{2 * gates}H]", optional=True),
        Input("sequence_lens", "[N]", "int32", optional=True),
        Input("initial_h", "[D,N,H]", optional=True),
    )


_RECURRENT_OUT = (
    Output("Y", "snc: [S,N,D*H]; sbnc: [S,D,N,H]; (sn)c: [S*N,D*H,1,1]"),
    Output("Y_h", "[D,N,H]", optional=True),
)

_TABLE: tuple[Contract, ...] = (
    Contract(
        "exSwish",
        (_ANY,),
        (_SAME,),
        (Attribute("beta", "float", 1.0),),
        "Y = X * sigmoid(beta * X)",
        dumped=True,
    ),
    Contract("exMish", (_ANY,), (_SAME,), (), "Y = X * tanh(softplus(X))", dumped=True),
    Contract("exGelu", (_ANY,), (_SAME,), (), "Y = X / 2 * (1 + erf(X / sqrt(2)))", dumped=True),
    Contract(
        "exGlu",
        (_ANY,),
        (Output("Y", "as X, half as long along axis"),),
        (Attribute("axis", "int"),),
        "a, b = split(X, 2, axis); Y = a * sigmoid(b)",
        dumped=True,
    ),
    Contract(
        "exSoftmax13",
        (_ANY,),
        (_SAME,),
        (Attribute("axis", "int", -1),),
        "Y = exp(X - max(X)) / sum(exp(X - max(X))), max and sum along axis",
        dumped=True,
    ),
    Contract(
        "exSoftmaxMask",
        (_ANY, Input("mask", "broadcasts to X", "bool")),
        (_SAME,),
        (Attribute("axis", "int"), Attribute("mask_value", "int", None, (0, 1))),
        "Y = softmax along axis over the entries where mask != mask_value, 0 elsewhere; 1/n where all are masked",
        dumped=True,
    ),
    Contract(
        "exNorm",
        (_ANY, Input("W", "broadcasts to X", optional=True), Input("B", "broadcasts to X", optional=True)),
        (_SAME,),
        (
            Attribute("mode", "string", None, ("layer", "mean_var", "rms", "l2", "pixel")),
            Attribute("axes", "ints", (1,)),
            Attribute("eps", "float", 1e-5),
        ),
        "d = X - mean(X); layer, mean_var: Y = d / sqrt(mean(d^2) + eps) * W + B; "
        "rms: Y = X / sqrt(mean(X^2) + eps) * W + B; l2: Y = X / max(sqrt(sum(X^2)), eps) * W + B; "
        "pixel: Y = X / sqrt(sum(X^2) + eps) * W + B; mean and sum over axes",
        dumped=True,
        ignored=("epsilon",),
        usual_inputs=3,
    ),
    Contract(
        "exMatMul",
        (Input("A", "[b|1,k,1,n]"), Input("B", "[b|1,k,1,m]"), Input("C", "broadcasts to Y", optional=True)),
        (Output("Y", "[b,n,1,m]"),),
        (Attribute("c_type", "string", "add", ("add", "mul")),),
        "Y[b,:,0,:] = transpose(A[b,:,0,:]) @ B[b,:,0,:], then + C or * C",
        dumped=True,
    ),
    Contract(
        "exSDPAttention",
        (
            Input("Q", "[b,d,1,q]"),
            Input("K", "[b,d,1,k]"),
            Input("V", "[b,v,1,k]"),
            Input("mask", "broadcasts to [b,k,1,q]", optional=True),
        ),
        (Output("Y", "[b,v,1,q]"),),
        (Attribute("scale", "float", 1.0),),
        "P = softmax over keys of (transpose(Q) @ K * scale + mask); Y = V @ transpose(P)",
        dumped=True,
    ),
    Contract(
        "exWindow",
        (Input("X", "[b,c,h,w]"),),
        (Output("Y", "partition: [b,c,nh*nw,wh*ww]; reverse: [b,c,nh*wh,nw*ww]"),),
        (
            Attribute("mode", "string", None, ("partition", "reverse", "partition_num_first")),
            Attribute("window_sizes", "ints"),
            Attribute("num_windows", "ints"),
        ),
        "partition: reshape [b,c,nh,wh,nw,ww], transpose 0,1,2,4,3,5; reverse: its inverse; "
        "partition_num_first: reshape [b,c,wh,nh,ww,nw], transpose 0,1,3,5,2,4; then reshape to Y",
        dumped=True,
    ),
    Contract(
        "exLSTM",
        (*_recurrent_inputs(4), Input("initial_c", "[D,N,H]", optional=True)),
        (*_RECURRENT_OUT, Output("Y_c", "[D,N,H]", optional=True)),
        _recurrent_attributes(Attribute("has_dropout", "int", 0, (0, 1))),
        "ONNX LSTM (gates i, o, f, c); Y in output_layout",
        dumped=True,
    ),
    Contract(
        "exGRU",
        _recurrent_inputs(3),
        _RECURRENT_OUT,
        _recurrent_attributes(Attribute("linear_before_reset", "int", 0, (0, 1))),
        "ONNX GRU (gates z, r, h); Y in output_layout",
        dumped=True,
    ),
    Contract("exHardSwish", (_ANY,), (_SAME,), (), "Y = X * clip(X / 6 + 1/2, 0, 1)"),
    Contract(
        "exRMSNorm",
        (_ANY, Input("W", "broadcasts to X")),
        (_SAME,),
        (Attribute("eps", "float", 1e-5),),
        "Y = X / sqrt(mean(X^2) + eps) * W, mean over the last axis",
        ignored=("epsilon", "axis", "axes"),
    ),
    Contract(
        "exLayerNorm",
        (_ANY, Input("W", "broadcasts to X"), Input("B", "broadcasts to X")),
        (_SAME,),
        (Attribute("normalized_shape", "ints"), Attribute("eps", "float", 1e-5)),
        "d = X - mean(X); Y = d / sqrt(mean(d^2) + eps) * W + B, mean over the last len(normalized_shape) axes",
    ),
    Contract(
        "exMeanVarianceNormalization",
        (_ANY,),
        (_SAME,),
        (Attribute("axes", "ints"), Attribute("eps", "float", 1e-5)),
        "d = X - mean(X); Y = d / sqrt(mean(d^2) + eps), mean over axes",
    ),
    Contract(
        "exLRN",
        (Input("X", "[b,c,h,w]"),),
        (_SAME,),
        (
            Attribute("size", "int"),
            Attribute("alpha", "float"),
            Attribute("beta", "float"),
            Attribute("bias", "float"),
        ),
        "s = sum of X^2 over size x size (odd) around each place of the same channel; "
        "Y = X / (bias + alpha / size * s)^beta",
    ),
    Contract(
        "exSwooshR",
        (_ANY,),
        (_SAME,),
        (),
        "Y = log(1 + exp(X - 1)) - 0.08 * X - 0.313261687",
        source="documented 3.2.72",
    ),
    Contract(
        "exSwooshL",
        (_ANY,),
        (_SAME,),
        (),
        "Y = log(1 + exp(X - 4)) - 0.08 * X - 0.035",
        source="documented 3.2.73",
    ),
)

CONTRACTS: dict[str, Contract] = {contract.name: contract for contract in _TABLE}
"""Every operator with public semantics, by op_type."""

WITHOUT_SEMANTICS: dict[str, str] = {
    "exConvStreaming": "a convolution with a cache, on the device only",
    "exDataConvert": "a layer of the compiled model, never in a dump",
    "exProposal": "in the operator list only, without a formula",
}
"""Known names that nobody outside the vendor can define, and what is known of them."""


def is_ex_name(op_type: str) -> bool:
    """Whether ``op_type`` is spelled like an operator of the toolkit: ``ex`` and a capital letter."""
    return len(op_type) > 2 and op_type.startswith("ex") and op_type[2].isupper()
