"""Nodes rewritten to what the compiler computes in their place, where that rounds differently.

Scales folded into convolution weights, means as convolutions with the weight 1/n, division by a constant as a
multiplication, normalisations with their affine part as ops of their own. Each form was found in the toolkit's dumps
or layer tables and gives its simulator's bits; which one applies is read from the compiled ops of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ort_rknpu.session.proto import FLOAT_TYPES, GraphIndex, attribute, node_id, opset

if TYPE_CHECKING:
    from ort_rknpu.session.half import CompiledGroup

LAYOUT_OPS = frozenset({"Reshape", "Split", "Transpose"})
"""Compiled ops that bring a tensor into the layout another op wants."""

_CASCADE_KERNEL = 7


def to_compiled_forms(
    model: onnx.ModelProto, groups: Sequence[CompiledGroup], values: Iterable[onnx.ValueInfoProto] = ()
) -> list[CompiledGroup]:
    """Rewrites the main graph of ``model`` in place; returns the groups with the new nodes in their places."""
    rewriter = _Rewriter(model, groups, values)
    for identity in list(rewriter.index.nodes):
        node = rewriter.index.nodes[identity]
        form = _FORMS.get(node.op_type)
        if form is not None and identity in rewriter.rows and identity not in rewriter.gone:
            form(rewriter, node, rewriter.rows[identity])
    return rewriter.finish()


class _Rewriter:
    """Collects replacements of single nodes and short chains, then puts them into the graph at once."""

    def __init__(
        self, model: onnx.ModelProto, groups: Sequence[CompiledGroup], values: Iterable[onnx.ValueInfoProto]
    ) -> None:
        self.model = model
        self.index = GraphIndex(model, values)
        self.groups = list(groups)
        self.opset = opset(model)
        self.rows: dict[str, list[CompiledGroup]] = {}
        for group in groups:
            for identity in group.nodes:
                self.rows.setdefault(identity, []).append(group)
        self.gone: set[str] = set()
        self._replacements: dict[str, list[onnx.NodeProto]] = {}

    def constant(self, name: str, value: np.ndarray) -> str:
        """Adds an initializer; names derive from tensors of the model, so they are unique."""
        self.model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def replace(self, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto], *, split: bool = False) -> None:
        """Puts ``nodes`` in the place of ``node``; with ``split`` each is a compiled op of its own."""
        identity = node_id(node)
        self._replacements[identity] = _named(node, nodes)
        if not split:
            members = frozenset(node_id(new) for new in nodes)
            self.groups = [_with_nodes(g, g.nodes | members) if identity in g.nodes else g for g in self.groups]
            return
        rows = [row for row in self.rows[identity] if row.op not in LAYOUT_OPS]
        remaining = [_with_nodes(g, g.nodes - {identity}) for g in self.groups]
        self.groups = [group for group in remaining if group.nodes]
        self.groups.extend(_with_nodes(rows[0], frozenset({node_id(new)})) for new in nodes)

    def fold_away(self, node: onnx.NodeProto) -> None:
        """Takes ``node`` out; something else writes its output."""
        self.gone.add(node_id(node))
        self._replacements[node_id(node)] = []

    def finish(self) -> list[CompiledGroup]:
        nodes = [new for node in self.model.graph.node for new in self._replacements.get(node_id(node), [node])]
        del self.model.graph.node[:]
        self.model.graph.node.extend(nodes)
        present = {node_id(node) for node in nodes}
        trimmed = [_with_nodes(group, group.nodes & present) for group in self.groups]
        return [group for group in trimmed if group.nodes]


def _named(node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """``nodes`` with names of their own; the one that writes what ``node`` wrote takes its name."""
    for new in nodes:
        new.name = node.name if node_id(new) == node_id(node) else node_id(new)
    return list(nodes)


def _with_nodes(group: CompiledGroup, nodes: frozenset[str]) -> CompiledGroup:
    return type(group)(group.op, group.device, nodes, group.inputs)


def _alone(node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> bool:
    return all(row.nodes == {node_id(node)} for row in rows)


def _division(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """x / c -> x * (1 / c)."""
    divisor = rewriter.index.constant(node.input[1])
    an_input = _alone(node, rows) or all(row.op.startswith("exMatMul") for row in rows)
    if divisor is None or divisor.dtype not in FLOAT_TYPES.values() or not an_input:
        return
    with np.errstate(divide="ignore"):
        factor = rewriter.constant(f"{node.output[0]}/reciprocal", (1 / divisor).astype(divisor.dtype))
    rewriter.replace(node, [helper.make_node("Mul", [node.input[0], factor], node.output)])


def _convolved(rows: Sequence[CompiledGroup]) -> int:
    """How many convolutions or matrix products the node compiled to."""
    return sum(row.op.startswith(("Conv", "exMatMul")) for row in rows)


def _global_average(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """A cascade of 7x7 depthwise convolutions, each with the same weight, n^(-1/stages)."""
    shape = rewriter.index.shape(node.input[0])
    if shape is None or len(shape) not in (3, 4) or not _convolved(rows):
        return
    rewriter.replace(node, list(_cascade(rewriter, node.input[0], node.output[0], shape)), split=True)


def _cascade(rewriter: _Rewriter, source: str, target: str, shape: tuple[int, ...]) -> Iterator[onnx.NodeProto]:
    dtype = FLOAT_TYPES[rewriter.index.elem_type(source)]
    channels, sizes = shape[1], list(shape[2:])
    stages: list[tuple[list[int], list[int]]] = []
    while True:
        kernel = [min(_CASCADE_KERNEL, size) for size in sizes]
        following = [-(-size // k) for size, k in zip(sizes, kernel)]
        missing = [f * k - size for f, k, size in zip(following, kernel, sizes)]
        stages.append((kernel, [m // 2 for m in missing] + [m - m // 2 for m in missing]))
        sizes = following
        if all(size == 1 for size in sizes):
            break
    weight = float(np.prod(shape[2:], dtype=np.float64)) ** (-1 / len(stages))
    for number, (kernel, pads) in enumerate(stages):
        output = target if number == len(stages) - 1 else f"{target}/stage{number}"
        data = rewriter.constant(f"{target}/weight{number}", np.full((channels, 1, *kernel), weight, dtype))
        yield helper.make_node(
            "Conv", [source, data], [output], group=channels, kernel_shape=kernel, strides=kernel, pads=pads
        )
        source = output


def _mean(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """The sum times 1/n, which is a weight and rounded as one; a cascade, as for GlobalAveragePool, of large images."""
    shape = rewriter.index.shape(node.input[0])
    axes = attribute(node, "axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        data = rewriter.index.constant(node.input[1])
        axes = None if data is None else data.tolist()
    if shape is None or not axes or not _convolved(rows):
        return
    positive = sorted(axis % len(shape) for axis in axes)  # type: ignore[attr-defined]
    keep = attribute(node, "keepdims", 1)
    if len(shape) == 4 and positive == [2, 3] and keep and max(shape[2:]) > _CASCADE_KERNEL:
        rewriter.replace(node, list(_cascade(rewriter, node.input[0], node.output[0], shape)), split=True)
        return
    count = int(np.prod([shape[axis] for axis in positive]))
    dtype = FLOAT_TYPES[rewriter.index.elem_type(node.input[0])]
    total = f"{node.output[0]}/sum"
    if rewriter.opset >= 13:
        inputs = [node.input[0], rewriter.constant(f"{node.output[0]}/axes", np.array(positive, np.int64))]
        sum_node = helper.make_node("ReduceSum", inputs, [total], keepdims=keep)
    else:
        sum_node = helper.make_node("ReduceSum", [node.input[0]], [total], axes=positive, keepdims=keep)
    _scaled(rewriter, node, sum_node, np.array(1 / count, dtype))


def _scaled(rewriter: _Rewriter, node: onnx.NodeProto, total: onnx.NodeProto, weight: np.ndarray) -> None:
    """``node`` as ``total`` times the float16-rounded ``weight``, rounded once."""
    rounded = rewriter.constant(f"{node.output[0]}/weight", weight.astype(np.float16).astype(weight.dtype))
    scale = helper.make_node("Mul", [total.output[0], rounded], node.output)
    rewriter.replace(node, [total, scale])


def is_anchor(index: GraphIndex, node: onnx.NodeProto) -> bool:
    """Whether a node is one the compiler turns into a convolution with constant weights."""
    if node.op_type in ("Conv", "ConvTranspose", "Gemm"):
        return True
    return node.op_type == "MatMul" and any(name in index.computed for name in node.input)


def affine_chain(index: GraphIndex, identity: str, members: Collection[str]) -> list[str]:
    """A convolution and what is folded into it: nodes of ``members`` that scale or shift its result by constants."""
    chain = [identity]
    while (reader := index.single_reader(index.nodes[chain[-1]].output[0])) is not None and reader in members:
        node = index.nodes[reader]
        others = [name for name in node.input if name != index.nodes[chain[-1]].output[0]]
        affine = node.op_type in ("Add", "Sub", "Mul", "Div", "BatchNormalization")
        if not affine or not all(name in index.computed for name in others):
            break
        chain.append(reader)
    return chain


def _tanh_gelu(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """The tanh form of GELU as the erf form: the compiler has only that one."""
    index = rewriter.index
    group = next((row for row in rows if row.op.endswith("Gelu")), None)
    if group is None:
        return
    members = {identity for identity in group.nodes if identity in index.nodes}
    for identity in [i for i in members if is_anchor(index, index.nodes[i])]:
        members -= set(affine_chain(index, identity, members))
    read = {name for identity in members for name in index.nodes[identity].input if name not in index.computed}
    written = {name for identity in members for name in index.nodes[identity].output}
    sources, results = read - written, written - read
    if len(sources) != 1 or len(results) != 1:
        return
    (x,), (output,) = sources, results
    dtype = FLOAT_TYPES[index.elem_type(x)]
    root, one, half = (
        rewriter.constant(f"{output}/{name}", np.array(value, dtype))
        for name, value in (("sqrt2", np.sqrt(2)), ("one", 1), ("half", 0.5))
    )
    names = [f"{output}/{name}" for name in ("scaled", "erf", "plus", "product")]
    last = index.nodes[index.producer[output]]
    for identity in members - {node_id(last)}:
        rewriter.fold_away(index.nodes[identity])
    rewriter.gone.add(node_id(last))
    rewriter.replace(
        last,
        [
            helper.make_node("Div", [x, root], names[:1]),
            helper.make_node("Erf", names[:1], names[1:2]),
            helper.make_node("Add", [names[1], one], names[2:3]),
            helper.make_node("Mul", [x, names[2]], names[3:]),
            helper.make_node("Mul", [names[3], half], [output]),
        ],
    )


def _average_pool(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """A convolution with the weight 1/n for kernels that are no pooling window to the NPU."""
    kernel = [int(size) for size in attribute(node, "kernel_shape", [])]  # type: ignore[attr-defined]
    padded = any(attribute(node, "pads", [])) or attribute(node, "auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")  # type: ignore[arg-type]
    if not _convolved(rows) or (padded and not attribute(node, "count_include_pad", 0)):
        return
    area = int(np.prod(kernel))
    dtype = FLOAT_TYPES[rewriter.index.elem_type(node.input[0])]
    pool = onnx.NodeProto()
    pool.CopyFrom(node)
    pool.output[0] = f"{node.output[0]}/mean"
    rounded = float(np.float16(1 / area)) * area
    scale = helper.make_node(
        "Mul",
        [pool.output[0], rewriter.constant(f"{node.output[0]}/weight", np.array(rounded, dtype))],
        node.output,
    )
    rewriter.replace(node, [pool, scale])


def _euclidean_norm(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """Squares, their sum and its root, each a compiled op."""
    if sum(row.op not in LAYOUT_OPS for row in rows) < 3:
        return
    source, output = node.input[0], node.output[0]
    total = onnx.NodeProto()
    total.CopyFrom(node)
    total.op_type = "ReduceSum" if rewriter.opset >= 18 or rewriter.opset < 13 else "ReduceSumSquare"
    nodes = [helper.make_node("Mul", [source, source], [f"{output}/squares"])]
    total.input[0], total.output[0] = f"{output}/squares", f"{output}/sum"
    if total.op_type == "ReduceSumSquare":
        axes = attribute(node, "axes")
        kept = [a for a in node.attribute if a.name != "axes"]
        total.op_type = "ReduceSum"
        del total.attribute[:]
        total.attribute.extend(kept)
        if axes:
            total.input.append(rewriter.constant(f"{output}/axes", np.array(axes, np.int64)))
    nodes.append(total)
    nodes.append(helper.make_node("Sqrt", [f"{output}/sum"], [output]))
    rewriter.replace(node, nodes, split=True)


def _affine(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """A normalisation whose scale and bias became a Mul and an Add behind exNorm, which scales per channel alone."""
    names = {row.op for row in rows}
    scale, bias = (rewriter.index.constant(name) if name else None for name in (*node.input[1:3], "", "")[:2])
    if scale is None or "exNorm" not in names:
        return
    several_axes = sum(size > 1 for size in scale.shape) > 1 and not (scale == 1).all()
    if "Mul" not in names and not several_axes:
        return
    output, dtype = node.output[0], scale.dtype
    shape = (-1, *[1] * (len(rewriter.index.shape(node.input[0]) or ()) - 2))
    if node.op_type == "InstanceNormalization":
        if len(shape) < 2 or bias is None:
            return
        neutral = [rewriter.constant(f"{output}/ones", np.ones_like(scale))]
        neutral.append(rewriter.constant(f"{output}/zeros", np.zeros_like(scale)))
        scale, bias = scale.reshape(shape), bias.reshape(shape)
    else:
        neutral = [rewriter.constant(f"{output}/ones", np.ones_like(scale))]
    norm = onnx.NodeProto()
    norm.CopyFrom(node)
    del norm.input[1:], norm.output[:]
    norm.input.extend(neutral)
    norm.output.append(f"{output}/normalized")
    product = output if bias is None else f"{output}/scaled"
    nodes = [norm]
    nodes.append(
        helper.make_node(
            "Mul",
            [norm.output[0], rewriter.constant(f"{output}/scale", scale.astype(dtype))],
            [product],
        )
    )
    if bias is not None:
        data = rewriter.constant(f"{output}/bias", bias.astype(dtype))
        nodes.append(helper.make_node("Add", [product, data], [output]))
    rewriter.replace(node, nodes, split=True)


def _fold_scales(rewriter: _Rewriter, node: onnx.NodeProto, rows: Sequence[CompiledGroup]) -> None:
    """BatchNormalization and constant per-channel Mul, Div, Add, Sub behind a convolution, folded into it."""
    index = rewriter.index
    weight = index.constant(node.input[1])
    bias = index.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if weight is None or (bias is None and len(node.input) > 2 and node.input[2]):
        return
    if node.op_type == "MatMul" and weight.ndim != 2:
        return
    channels = _output_channels(node, weight)
    if channels is None:
        return
    factor, offset = np.ones(channels, np.float64), np.zeros(channels, np.float64)
    if bias is not None:
        offset = offset + bias
    folded: list[onnx.NodeProto] = []
    tensor = node.output[0]
    while (reader := index.single_reader(tensor)) is not None and any(reader in row.nodes for row in rows):
        after = index.nodes[reader]
        step = _affine_step(index, after, tensor, channels, _channel_axis_from_end(node, weight))
        if step is None:
            break
        factor, offset = factor * step[0], offset * step[0] + step[1]
        folded.append(after)
        tensor = after.output[0]
    if not folded or (node.op_type == "MatMul" and (factor == 1).all()):
        return
    output = tensor
    scaled = (weight * factor.reshape(_weight_scale_shape(node, weight))).astype(weight.dtype)
    inputs = [node.input[0], rewriter.constant(f"{output}/weight", scaled)]
    inputs.append(rewriter.constant(f"{output}/bias", offset.astype(weight.dtype)))
    conv = onnx.NodeProto()
    conv.CopyFrom(node)
    del conv.input[:], conv.output[:]
    new = [conv]
    if node.op_type == "MatMul":
        product = f"{output}/product"
        new.append(helper.make_node("Add", [product, inputs.pop()], [output]))
        conv.output.append(product)
    else:
        conv.output.append(output)
    conv.input.extend(inputs)
    rewriter.fold_away(node)
    for after in folded[:-1]:
        rewriter.fold_away(after)
    rewriter.gone.add(node_id(folded[-1]))
    rewriter.replace(folded[-1], new)


def _output_channels(node: onnx.NodeProto, weight: np.ndarray) -> int | None:
    group = int(attribute(node, "group", 1))  # type: ignore[call-overload]
    if node.op_type == "Conv":
        return weight.shape[0]
    if node.op_type == "ConvTranspose":
        return weight.shape[1] * group
    plain = all(attribute(node, name, value) == value for name, value in (("alpha", 1.0), ("beta", 1.0), ("transA", 0)))
    return weight.shape[0 if attribute(node, "transB", 0) else 1] if plain else None


def _weight_scale_shape(node: onnx.NodeProto, weight: np.ndarray) -> tuple[int, ...]:
    if node.op_type == "Conv" or attribute(node, "transB", 0):
        return (-1, *[1] * (weight.ndim - 1))
    return (1, -1, *[1] * (weight.ndim - 2))


def _channel_axis_from_end(node: onnx.NodeProto, weight: np.ndarray) -> int:
    return 1 if node.op_type in ("Gemm", "MatMul") else weight.ndim - 1


def _affine_step(
    index: GraphIndex, node: onnx.NodeProto, tensor: str, channels: int, axis_from_end: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The factor and offset per channel that ``node`` applies to ``tensor``, or None where it is no such node."""
    if node.op_type == "BatchNormalization" and node.input[0] == tensor:
        values = [index.constant(name) for name in node.input[1:5]]
        if any(value is None for value in values):
            return None
        gamma, beta, mean, variance = (np.asarray(value, np.float64) for value in values)
        # the compiler adds epsilon to the root when it folds; its own BatchNormalization adds it to the variance
        factor = gamma / (np.sqrt(variance) + float(attribute(node, "epsilon", 1e-5)))  # type: ignore[arg-type]
        return factor, beta - mean * factor
    if node.op_type not in ("Mul", "Div", "Add", "Sub"):
        return None
    first = node.input[0] == tensor
    if not first and node.op_type in ("Div", "Sub"):
        return None
    data = index.constant(node.input[1 if first else 0])
    vector = None if data is None else _per_channel(data, channels, axis_from_end)
    if vector is None:
        return None
    one, zero = np.ones(channels), np.zeros(channels)
    steps: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "Mul": (vector, zero),
        "Div": (1 / np.where(vector == 0, np.nan, vector), zero),
        "Add": (one, vector),
        "Sub": (one, -vector),
    }
    return steps[node.op_type]


def _per_channel(data: np.ndarray, channels: int, axis_from_end: int) -> np.ndarray | None:
    """``data`` as one value per channel where it broadcasts that way."""
    if data.size == 1:
        return np.full(channels, data.reshape(-1)[0], np.float64)
    if data.size != channels or data.ndim < axis_from_end or data.shape[data.ndim - axis_from_end] != channels:
        return None
    return data.reshape(-1).astype(np.float64)


_FORMS: dict[str, Callable[[_Rewriter, onnx.NodeProto, Sequence[CompiledGroup]], None]] = {
    "AveragePool": _average_pool,
    "Conv": _fold_scales,
    "ConvTranspose": _fold_scales,
    "Div": _division,
    "Gemm": _fold_scales,
    "GlobalAveragePool": _global_average,
    "InstanceNormalization": _affine,
    "LayerNormalization": _affine,
    "MatMul": _fold_scales,
    "ReduceL2": _euclidean_norm,
    "ReduceMean": _mean,
    "Tanh": _tanh_gelu,
}


def accurate_swish(model: onnx.ModelProto, values: Iterable[onnx.ValueInfoProto] = ()) -> None:
    """x * sigmoid(b x) as x / (1 + exp(-b x)), in place.

    ONNX Runtime's Sigmoid is exact to 1e-7 of 1, so far below zero its product with x has no correct digit left.
    """
    index = GraphIndex(model, values)
    replaced: dict[str, list[onnx.NodeProto]] = {}
    one = "ort_rknpu.swish.one"
    for identity, node in index.nodes.items():
        if node.op_type != "Mul" or index.elem_type(node.output[0]) != onnx.TensorProto.FLOAT:
            continue
        for x, gate in (node.input, reversed(node.input)):
            sigmoid = index.nodes.get(index.producer.get(gate, ""))
            if sigmoid is None or sigmoid.op_type != "Sigmoid" or index.single_reader(gate) != identity:
                continue
            inner = index.nodes.get(index.producer.get(sigmoid.input[0], ""))
            scaled = inner is not None and inner.op_type == "Mul" and x in inner.input
            if sigmoid.input[0] != x and not scaled:
                continue
            names = [f"{node.output[0]}/{part}" for part in ("negated", "exp", "denominator")]
            replaced[node_id(sigmoid)] = []
            replaced[identity] = _named(
                node,
                [
                    helper.make_node("Neg", [sigmoid.input[0]], names[:1]),
                    helper.make_node("Exp", names[:1], names[1:2]),
                    helper.make_node("Add", [names[1], one], names[2:]),
                    helper.make_node("Div", [x, names[2]], node.output),
                ],
            )
            break
    if not replaced:
        return
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), one))
    nodes = [new for node in model.graph.node for new in replaced.get(node_id(node), [node])]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
