"""Builds ops for the rule tests: ``sample(entry, name=value ...)`` passes, with the named values as asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ort_rknpu.graph import Op, Value

Over = dict[str, Any]


def data(shape: Sequence[Any] | None, dtype: str = "float32") -> Value:
    """A run-time tensor behind another op."""
    value = Value("x", shape, dtype)
    Op("Relu", [Value("source", shape, dtype)], [value])
    return value


def model_input(shape: Sequence[Any]) -> Value:
    """A tensor that comes from outside."""
    return Value("image", shape, "float32")


def weight(shape: Sequence[int]) -> Value:
    """A constant whose data is absent."""
    return Value("w", shape, "float32", constant=True)


def const(items: Any, dtype: str = "int64") -> Value:
    """A constant with data."""
    array = np.asarray(items, dtype)
    return Value("c", array.shape, dtype, array)


def out(shape: Sequence[Any] | None, dtype: str = "float32") -> Value:
    """An output."""
    return Value("y", shape, dtype)


def _pair(over: Over, name: str, default: int) -> list[int]:
    return [over.get(f"{name}_h", default), over.get(f"{name}_w", default)]


def conv(op_type: str, over: Over, *, depthwise: bool = False, transposed: bool = False) -> Op:
    kernel, strides, dilations = _pair(over, "kernel", 1), _pair(over, "strides", 1), _pair(over, "dilations", 1)
    pads = [over.get(f"pads_{side}", 0) for side in ("top", "left", "bottom", "right")]
    channels, width = over.get("channel", 16), over.get("width", 40)
    group = channels if depthwise else over.get("group", 1)
    outputs = channels if depthwise else over.get("num_output", 16)
    shape = (1, channels, over.get("height", 40), width)
    weights = (channels, outputs // group, *kernel) if transposed else (outputs, channels // group, *kernel)
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "group": group}
    if "output_padding_h" in over:
        attributes["output_padding"] = [over["output_padding_h"], 0]
    first = model_input(shape) if over.get("first_layer") else data(shape)
    return Op(op_type, [first, weight(weights)], [out((1, outputs, 40, 40))], attributes)


def pool(op_type: str, over: Over) -> Op:
    shape = (1, over.get("channel", 16), over.get("height", 40), over.get("width", 40))
    if op_type.startswith("Global"):
        shape = (1, over.get("channel", 16), over.get("height", 5), over.get("width", 5))
        return Op(op_type, [data(shape)], [out((1, 16, 1, 1))])
    pads = [over.get(f"pad_{side}", 0) for side in ("top", "left", "bottom", "right")]
    attributes: Over = {"kernel_shape": _pair(over, "kernel", 2), "strides": _pair(over, "strides", 1), "pads": pads}
    for name in ("ceil_mode", "count_include_pad", "storage_order"):
        if name in over:
            attributes[name] = over[name]
    if op_type == "AveragePool":
        attributes.setdefault("count_include_pad", 1)
    if "dilations_h" in over:
        attributes["dilations"] = [over["dilations_h"], 1]
    return Op(op_type, [data(shape)], [out((1, 16, 20, 20)) for _ in range(over.get("outputs", 1))], attributes)


def pool_as_conv(op_type: str, over: Over) -> Op:
    """An average pool asked for the values of a depthwise convolution."""
    renamed = {name.replace("pads_", "pad_"): value for name, value in over.items()}
    if op_type.startswith("Global"):
        renamed["height"] = renamed.get("kernel_h", renamed.get("height", 5))
        renamed["width"] = renamed.get("kernel_w", renamed.get("width", 5))
    else:
        renamed |= {name: renamed.get(name, 2) for name in ("kernel_h", "kernel_w")}
    return pool(op_type, renamed)


def elementwise(op_type: str, over: Over) -> Op:
    shape = (1, 16, 8, 8)
    operands = [data(shape) for _ in range(over.get("operands", 2))]
    for index in range(over.get("constant_operands", 0)):
        operands[index] = weight(shape)
    if "operand" in over:
        operands[1] = over["operand"]
    return Op(op_type, operands, [out(over.get("output", shape))])


def where(op_type: str, over: Over) -> Op:
    shape = (1, 16, 8, 8)
    operand = over.get("operand", data(shape))
    return Op(op_type, [data(shape, "bool"), data(shape), operand], [out(over.get("output", shape))])


def expand(op_type: str, over: Over) -> Op:
    operand = over.get("operand", data((1, 16, 1, 8)))
    shape = over.get("output", (1, 16, 8, 8))
    return Op(op_type, [operand, const([1, 1, 1, 1])], [out(shape)])


_RNN_ATTRIBUTES = (
    "direction",
    "linear_before_reset",
    "proj_size",
    "input_forget",
    "has_projection",
    "input_layout",
    "output_layout",
    "activations",
    "clip",
    "layout",
    "batch_size",
    "sequence_size",
)


def rnn(op_type: str, over: Over) -> Op:
    directions, hidden, features = over.get("num_directions", 1), over.get("hidden_size", 8), over.get("input_size", 8)
    length, batch = over.get("seq_length", 5), over.get("batch_size", 1)
    gates = 4 if "LSTM" in op_type else 3
    inputs: list[Value | None] = [
        data((length, batch, features)),
        weight((directions, gates * hidden, features)),
        weight((directions, gates * hidden, hidden)),
        weight((directions, 2 * gates * hidden)),
        over.get("sequence_lens"),
    ]
    if over.get("peephole"):
        inputs += [None, None, weight((directions, 3 * hidden))]
    attributes: Over = {"hidden_size": hidden}
    for name in _RNN_ATTRIBUTES:
        if name in over.get("attributes", ()) or (name in over and name != "batch_size"):
            attributes[name] = over[name]
    return Op(op_type, inputs, [out((length, directions, batch, hidden))], attributes)


def softmax(op_type: str, over: Over) -> Op:
    shape = (
        over.get("batch", 1),
        over.get("channel", 16),
        over.get("height", 16),
        over.get("width", 16),
    )
    inputs = [data(shape)]
    attributes = {"axis": over.get("axis", 1)}
    if op_type == "exSoftmaxMask":
        mask = (over.get("mask_batch", 1), over.get("mask_channel", 16), 1, over.get("mask_width", 16))
        inputs.append(data(mask))
        attributes["mask_value"] = over.get("mask_value", 1)
    return Op(op_type, inputs, [out(shape)], attributes)


def batch_norm(op_type: str, over: Over) -> Op:
    scale = data((16,)) if over.get("run_time") else weight((16,))
    attributes = {"epsilon": over.get("epsilon", 1e-5)}
    return Op(op_type, [data((1, 16, 8, 8)), scale, *[weight((16,))] * 3], [out((1, 16, 8, 8))], attributes)


def ex_norm(op_type: str, over: Over) -> Op:
    attributes = {"mode": over.get("mode", "layer"), "axes": list(over.get("axes", (1,)))}
    return Op(op_type, [data((1, 16, 8, 8))], [out((1, 16, 8, 8))], attributes)


def ex_matmul(op_type: str, over: Over) -> Op:
    batch, inner = over.get("batch_a", 2), over.get("k", 16)
    inputs = [data((batch, inner, 1, 8)), data((over.get("batch_b", 2), inner, 1, 8))]
    if "operand" in over:
        inputs.append(over["operand"])
    attributes = {"c_type": over["c_type"]} if "c_type" in over else {}
    return Op(op_type, inputs, [out((batch, 8, 1, 8))], attributes)


def attention(op_type: str, over: Over) -> Op:
    query, value = over.get("query_channel", 64), over.get("value_channel", 64)
    shapes = ((2, query, 1, 32), (2, query, 1, 32), (2, value, 1, 32))
    return Op(op_type, [data(shape) for shape in shapes], [out((2, value, 1, 32))], {"scale": 1.0})


def along_axis(op_type: str, over: Over) -> Op:
    shape = (1, 16, 8, 8)
    inputs = [data(shape)] * (2 if op_type == "Concat" else 1)
    if op_type == "Gather":
        inputs.append(const(np.zeros((1,) * over.get("indices_rank", 1))))
    return Op(op_type, inputs, [out(shape)], {"axis": over.get("axis", 1)})


def pad(op_type: str, over: Over) -> Op:
    shape = (1, over.get("channel", 16), over.get("height", 8), over.get("width", 8))
    value = const(over["constant_value"], "float32") if "constant_value" in over else None
    pads = const([0, 0, over.get("pad", 1), 1, 0, 0, 1, 1])
    return Op(op_type, [data(shape), pads, value], [out(shape)], {"mode": over.get("mode", "constant")})


def power(op_type: str, over: Over) -> Op:
    exponent = const([over.get("exponent", 2)] * over.get("exponent_size", 1), "float32")
    return Op(op_type, [data((1, 16, 8, 8)), exponent], [out((1, 16, 8, 8))])


def clip(op_type: str, over: Over) -> Op:
    bounds = [const(over.get(name, default), "float32") for name, default in (("min", 0), ("max", 6))]
    return Op(op_type, [data((1, 16, 8, 8)), *bounds], [out((1, 16, 8, 8))])


def with_alpha(op_type: str, over: Over) -> Op:
    default = {"alpha": 1 / 6, "beta": 0.5} if op_type == "HardSigmoid" else {"alpha": 1.0}
    attributes = {name: float(np.float32(over.get(name, value))) for name, value in default.items()}
    return Op(op_type, [data((1, 16, 8, 8))], [out((1, 16, 8, 8))], attributes)


def prelu(op_type: str, over: Over) -> Op:
    return Op(op_type, [data((1, 16, 8, 8)), over.get("slope", weight((16, 1, 1)))], [out((1, 16, 8, 8))])


def resize(op_type: str, over: Over) -> Op:
    scales = over.get("scales", (1, 1, 2, 2))
    shape = over.get("shape", (1, 16, 8, 8))
    target = tuple(int(dim * scale) for dim, scale in zip(shape, scales))
    roi = const([0.0] * over["roi_size"], "float32") if "roi_size" in over else None
    attributes = {name: over[name] for name in over if name not in ("scales", "shape", "roi_size")}
    attributes.setdefault("mode", "linear")
    return Op(op_type, [data(shape), roi, const(scales, "float32")], [out(target)], attributes)


def slicing(op_type: str, over: Over) -> Op:
    shape = over.get("shape", (1, 16, 8, 8))
    starts, ends = over.get("starts", (0,)), over.get("ends", (8,))
    axes, steps = over.get("axes", (2,)), over.get("steps", (1,))
    return Op(op_type, [data(shape), const(starts), const(ends), const(axes), const(steps)], [out(shape)])


def glu(op_type: str, over: Over) -> Op:
    return Op(op_type, [data((1, 16, 8, 8))], [out((1, 8, 8, 8))], {"axis": over.get("axis", 1)})


def window(op_type: str, over: Over) -> Op:
    attributes = {
        "mode": over.get("mode", "partition"),
        "window_sizes": over.get("window_sizes", [4, 4]),
        "num_windows": over.get("num_windows", [2, 2]),
    }
    return Op(op_type, [data((1, 16, 8, 8))], [out((1, 16, 4, 16))], attributes)


def transpose(op_type: str, over: Over) -> Op:
    shape, perm = over.get("shape", (1, 16, 8, 8)), over.get("perm", (0, 1, 2, 3))
    return Op(op_type, [data(shape)], [out([shape[axis] for axis in perm])], {"perm": list(perm)})


def unary(op_type: str, over: Over) -> Op:
    shape = (1, 16, 8, 8)
    shape_input = [const([1, -1, 8, 8])] if op_type in ("Reshape", "Tile") else []
    return Op(op_type, [data(shape), *shape_input], [out(shape)])


BUILDERS: dict[str, Callable[[str, Over], Op]] = {
    "Conv": conv,
    "DepthwiseConv": lambda op_type, over: conv(op_type, over, depthwise=True),
    "ConvTranspose": lambda op_type, over: conv(op_type, over, transposed=True),
    "exConvStreaming": lambda op_type, over: conv(op_type, {"width": 1} | over),
    "Where": where,
    "Expand": expand,
    "BatchNormalization": batch_norm,
    "exNorm": ex_norm,
    "exMatMul": ex_matmul,
    "exSDPAttention": attention,
    "Pad": pad,
    "Pow": power,
    "Clip": clip,
    "PRelu": prelu,
    "Resize": resize,
    "Slice": slicing,
    "exGlu": glu,
    "exWindow": window,
    "Transpose": transpose,
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"), pool),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min", "Greater"), elementwise),
    **dict.fromkeys(("GRU", "LSTM"), rnn),
    **dict.fromkeys(("Softmax", "exSoftmax13", "exSoftmaxMask", "Hardmax"), softmax),
    **dict.fromkeys(("Concat", "Split", "Gather"), along_axis),
    **dict.fromkeys(("HardSigmoid", "Elu"), with_alpha),
}
"""Entry with limits of its own -> builder."""


def sample(entry: str, op_type: str | None = None, **over: Any) -> Op:
    """An op that ``entry`` accepts, with the given values; ``op_type`` where it is another than the entry's name."""
    return BUILDERS.get(entry, unary)(op_type or {"DepthwiseConv": "Conv"}.get(entry, entry), over)


def with_rank(op: Op, rank: int) -> Op:
    """The op with leading axes of size 1 up to ``rank`` on its first input and its outputs."""
    for value in (op.inputs[0], *op.outputs):
        assert value is not None
        assert value.shape is not None
        value.shape = (1,) * (rank - len(value.shape)) + value.shape
    return op
