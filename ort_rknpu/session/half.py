"""Half-precision numerics of the NPU on the CPU: which tensors are rounded to float16, and the rewritten model.

Measured on the vendor's simulator (2.3.2): the output of every compiled op is rounded to float16, to nearest even;
sums inside one op run in float32; weights are rounded, biases and PRelu slopes are not; a graph input is not rounded
before the first op, unless that op reads it through an inserted Reshape or Transpose. A convolution that the layer
table shows fused with its activation or residual is still rounded in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ort_rknpu.session.half_forms import LAYOUT_OPS, accurate_swish, affine_chain, is_anchor, to_compiled_forms
from ort_rknpu.session.proto import FLOAT_TYPES, GraphIndex, drop_unused_constants, opset

FusedRounding = Literal["simulator", "once"]

OVERFLOW_OUTPUT = "ort_rknpu.overflows"
"""Graph output (int64, one count per tensor of :attr:`HalfModel.counted`) of a model that counts overflows."""

DISABLED_OPTIMIZERS = ("LayerNormFusion", "LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion")
"""Graph optimisers of ONNX Runtime that look through Casts, and so would take a rounding for mixed precision."""

_ALL = frozenset(range(16))
_FLOAT32_INPUTS: dict[str, frozenset[int]] = {
    "BatchNormalization": _ALL - {0},
    "Clip": frozenset({1, 2}),
    "Conv": frozenset({2}),
    "ConvTranspose": frozenset({2}),
    "Dropout": _ALL - {0},
    "GRU": frozenset({3}),
    "Gemm": frozenset({2}),
    "LSTM": frozenset({3}),
    "OneHot": _ALL,
    "PRelu": frozenset({1}),
    "Pad": frozenset({2}),
    "Pow": frozenset({1}),
    "Resize": frozenset({1, 2}),
    "Upsample": frozenset({1}),
    "exGRU": frozenset({3}),
    "exLSTM": frozenset({3}),
}
"""Inputs that are no weights to the compiler: biases, which it keeps in float32, and parameters."""

MOVES = frozenset(
    {
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Relu", "Reshape", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "exWindow"),
    }
)
"""Ops whose output values are values of their inputs (or 0): rounded inputs give rounded outputs."""

_SHRINKS = frozenset(
    {
        *("Sigmoid", "HardSigmoid", "Tanh", "Erf", "Relu", "HardSwish", "Softmax", "Elu", "AveragePool"),
        *("exSwish", "exGelu", "exMish", "exHardSwish", "exSoftmax13", "exSoftmaxMask"),
    }
)
"""Ops whose results are no larger than 1 or than the largest value they read: what was finite stays so."""
_SHRINKING_ROWS = ("ExSwish", "exSwish", "ExGelu", "exGelu", "exMish", "HardSwish")

_CLAMPS = frozenset({"Relu", "Clip"})
"""Monotone clamps: rounding before and after one gives what rounding after it alone gives."""


@dataclass(frozen=True)
class CompiledGroup:
    """The nodes that one compiled op computes.

    Attributes:
        op: the compiled op's name in the layer table, for example ``ConvExSwish``.
        device: ``npu``, ``cpu`` or ``unsupported``.
        nodes: the file's nodes, each by its first output.
        inputs: names of the tensors the compiled op reads; empty where not known.
    """

    op: str
    device: str
    nodes: frozenset[str]
    inputs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HalfOptions:
    """How a model is rounded.

    Attributes:
        devices: compiled ops on these devices are rounded.
        fused: ``simulator`` rounds between a convolution and what is fused to it, as the vendor's simulator does;
            ``once`` rounds a row of the layer table once.
        saturate: values beyond float16 become +-65504 instead of infinity.
        count: adds the output :data:`OVERFLOW_OUTPUT`.
    """

    devices: frozenset[str] = frozenset({"npu"})
    fused: FusedRounding = "simulator"
    saturate: bool = False
    count: bool = False


@dataclass(frozen=True)
class HalfModel:
    """A model with NPU numerics.

    Attributes:
        model: the rewritten model; inputs and outputs keep their names and types.
        rounded: the tensors that are rounded, in graph order.
        counted: those in which values can overflow that were finite before, in the order of the counts.
    """

    model: onnx.ModelProto
    rounded: tuple[str, ...]
    counted: tuple[str, ...] = ()


@dataclass
class _Plan:
    tensors: list[str] = field(default_factory=list)
    bounded: set[str] = field(default_factory=set)
    weights: list[tuple[str, int]] = field(default_factory=list)
    reads: list[tuple[str, int]] = field(default_factory=list)


def emulate_half(
    model: onnx.ModelProto,
    groups: Sequence[CompiledGroup],
    options: HalfOptions = HalfOptions(),
    lower: Callable[[onnx.ModelProto], onnx.ModelProto] | None = None,
    values: Sequence[onnx.ValueInfoProto] = (),
) -> HalfModel:
    """Rewrites ``model`` so that ONNX Runtime's CPU provider computes what the NPU would.

    Args:
        model: the user's model, float32 or float64, not changed.
        groups: what the compiler makes of it.
        options: see :class:`HalfOptions`.
        lower: replaces ex nodes, keeping their output names; called once weights are rounded.
        values: types and shapes of tensors, as far as the model itself does not carry them.

    Returns:
        The rewritten model and the names of the rounded tensors.
    """
    work = onnx.ModelProto()
    work.CopyFrom(model)
    _drop_initializer_inputs(work.graph)
    chosen = to_compiled_forms(work, [group for group in groups if group.device in options.devices], values)
    plan = _plan(GraphIndex(work, values), chosen, options.fused)
    _round_constants(work, plan, values)
    if lower is not None:
        work = lower(work)
    accurate_swish(work, values)
    rounded = _round_tensors(work, plan, options, values)
    drop_unused_constants(work.graph)
    return HalfModel(work, rounded, tuple(name for name in rounded if name not in plan.bounded))


def _drop_initializer_inputs(graph: onnx.GraphProto) -> None:
    initializers = {tensor.name for tensor in graph.initializer}
    kept = [value for value in graph.input if value.name not in initializers]
    del graph.input[:]
    graph.input.extend(kept)


def _plan(index: GraphIndex, groups: Sequence[CompiledGroup], fused: FusedRounding) -> _Plan:
    rows: dict[str, list[CompiledGroup]] = {}
    for group in groups:
        for identity in group.nodes:
            if identity in index.nodes:
                rows.setdefault(identity, []).append(group)
    inner_tails = {t for g in groups for t in _tails(index, g)} if fused == "simulator" else set[str]()
    plan = _Plan()
    exact: set[str] = set()
    for identity, node in index.nodes.items():
        mine = rows.get(identity)
        if mine is None:
            continue
        for position, name in enumerate(node.input):
            if index.elem_type(name) not in FLOAT_TYPES:
                continue
            if name in index.computed:
                if _is_weight(index, node, position, mine):
                    plan.weights.append((identity, position))
                    exact.add(name)
            elif _through_helper(_graph_input(index, name, rows), mine):
                plan.reads.append((identity, position))
        moved = node.op_type in MOVES and all(
            name in exact for name in node.input if name and index.elem_type(name) in FLOAT_TYPES
        )
        for name in node.output:
            if not name or index.elem_type(name) not in FLOAT_TYPES or name in index.computed:
                continue
            if moved:
                exact.add(name)
            elif name in inner_tails or not _is_internal(index, identity, name, mine):
                if _stays_finite(index, node, name, mine, exact, inner_tails):
                    plan.bounded.add(name)
                exact.add(name)
                plan.tensors.append(name)
    return plan


def _stays_finite(
    index: GraphIndex, node: onnx.NodeProto, name: str, rows: Sequence[CompiledGroup], exact: set[str], tails: set[str]
) -> bool:
    """Whether a result cannot overflow as long as what it is computed from, float16 already, did not."""
    sources: Iterable[str] = node.input
    if name in tails:
        return False
    if node.op_type not in _SHRINKS:
        row = next((row for row in rows if len(row.nodes) > 1 and row.op.endswith(_SHRINKING_ROWS)), None)
        if row is None:
            return False
        members = [index.nodes[identity] for identity in row.nodes if identity in index.nodes]
        written = {output for member in members for output in member.output}
        if written & tails:
            return True
        sources = {read for member in members for read in member.input} - written
    runtime = [read for read in sources if read and read not in index.computed]
    return all(read in exact for read in runtime if index.elem_type(read) in FLOAT_TYPES)


def _is_internal(index: GraphIndex, identity: str, name: str, rows: Iterable[CompiledGroup]) -> bool:
    """Whether every reader of a tensor is fused with its producer."""
    readers = index.readers.get(name, [])
    if not readers or name in index.outputs:
        return False
    return all(any(reader in row.nodes for row in rows) for reader in readers)


def _graph_input(index: GraphIndex, name: str, rows: Mapping[str, object]) -> str | None:
    """The graph input whose values a tensor holds through nodes that are no compiled op of their own."""
    while name not in index.inputs:
        producer = index.producer.get(name)
        if producer is None or producer in rows or index.nodes[producer].op_type not in MOVES:
            return None
        name = index.nodes[producer].input[0]
    return name


def _through_helper(name: str | None, rows: Sequence[CompiledGroup]) -> bool:
    """Whether compiled ops read a graph input only through a layout helper, whose output is rounded."""
    computing = [row for row in rows if row.op not in LAYOUT_OPS] or rows
    return name is not None and all(row.inputs and name not in row.inputs for row in computing)


def _is_weight(index: GraphIndex, node: onnx.NodeProto, position: int, rows: Sequence[CompiledGroup]) -> bool:
    if position in _FLOAT32_INPUTS.get(node.op_type, ()) or any(row.op == "BatchNormalization" for row in rows):
        return False
    fused = [row for row in rows if len(row.nodes) > 1]
    if len(fused) < len(rows):
        return True
    members = [index.nodes[i] for row in fused for i in row.nodes if i in index.nodes]
    if any(is_anchor(index, member) for member in members):
        return is_anchor(index, node)
    data = index.constant(node.input[position])
    # a scalar is an attribute of most fused ops, but an input of exMatMul
    return data is None or data.size > 1 or any(row.op.startswith("exMatMul") for row in fused)


def _tails(index: GraphIndex, group: CompiledGroup) -> list[str]:
    """Tensors inside a fused row that the simulator rounds: the convolution's own result and sums with a residual."""
    members = [identity for identity in group.nodes if identity in index.nodes]
    anchors = [identity for identity in members if is_anchor(index, index.nodes[identity])]
    if len(members) < 2 or not anchors or not group.op.startswith("Conv"):
        return []
    found = [index.nodes[affine_chain(index, identity, members)[-1]].output[0] for identity in anchors]
    for identity in members:
        node = index.nodes[identity]
        if node.op_type == "Add" and not any(name in index.computed for name in node.input):
            found.append(node.output[0])
    readers = {name: index.single_reader(name) for name in found}
    return [name for name, reader in readers.items() if reader is None or index.nodes[reader].op_type not in _CLAMPS]


def _round_constants(model: onnx.ModelProto, plan: _Plan, values: Sequence[onnx.ValueInfoProto]) -> None:
    """Lets the nodes of the plan read float16-rounded copies of their weights and helper-read inputs."""
    index = GraphIndex(model, values)
    copies: dict[str, str] = {}
    casts: dict[str, list[onnx.NodeProto]] = {}
    for identity, position in (*plan.weights, *plan.reads):
        node = index.nodes[identity]
        name = node.input[position]
        copy = copies.get(name)
        if copy is None:
            copy = copies[name] = f"{name}/half"
            data = index.constant(name)
            if data is not None:
                model.graph.initializer.append(numpy_helper.from_array(round_half(data), copy))
            else:
                casts[name] = _cast_pair(name, copy, index.elem_type(name))
        node.input[position] = copy
    nodes = [pair for name, pair in casts.items() if name not in index.producer]
    result = [node for pair in nodes for node in pair]
    for node in model.graph.node:
        result.append(node)
        for name in node.output:
            result.extend(casts.get(name, ()))
    _replace_nodes(model.graph, result)


def round_half(data: np.ndarray) -> np.ndarray:
    """A weight as the NPU has it: rounded to float16, in its own dtype.

    The toolkit takes constants of -3.4e38 and below, which mean minus infinity in a mask, as -10000.
    """
    with np.errstate(over="ignore"):
        return np.where(data <= _MINUS_INFINITY, _MASK, data).astype(np.float16).astype(data.dtype)


def _cast_pair(source: str, target: str, elem_type: int) -> list[onnx.NodeProto]:
    half = f"{target}/float16"
    return [
        helper.make_node("Cast", [source], [half], name=half, to=onnx.TensorProto.FLOAT16),
        helper.make_node("Cast", [half], [target], name=f"{target}/round", to=elem_type),
    ]


def _replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    kept = list(nodes)
    del graph.node[:]
    graph.node.extend(kept)


def _round_tensors(
    model: onnx.ModelProto, plan: _Plan, options: HalfOptions, values: Sequence[onnx.ValueInfoProto]
) -> tuple[str, ...]:
    """Puts a rounding behind each tensor of the plan; returns them in the order of the graph, and of the counts."""
    index = GraphIndex(model, values)
    wanted = set(plan.tensors)
    rounded: list[str] = []
    shared = _SharedConstants(model.graph)
    result: list[onnx.NodeProto] = []
    counter = _Counter(shared)
    for node in model.graph.node:
        result.append(node)
        for position, name in enumerate(node.output):
            if name not in wanted:
                continue
            rounded.append(name)
            elem_type = index.elem_type(name)
            raw = source = f"{name}/unrounded"
            node.output[position] = raw
            if options.saturate:
                source = f"{name}/saturated"
                result.append(_saturate(raw, source, shared, elem_type, opset(model)))
            result.extend(_cast_pair(source, name, elem_type))
            if options.count and name not in plan.bounded:
                result.extend(counter.add(raw, name, elem_type))
    if options.count and counter.number:
        result.extend(counter.finish())
        info = helper.make_tensor_value_info(OVERFLOW_OUTPUT, onnx.TensorProto.INT64, [counter.number])
        model.graph.output.append(info)
    _replace_nodes(model.graph, result)
    return tuple(rounded)


class _SharedConstants:
    """Adds each constant a rewrite needs once."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._names: set[str] = set()

    def __call__(self, name: str, value: np.ndarray) -> str:
        full = f"ort_rknpu.{name}.{value.dtype}"
        if full not in self._names:
            self._names.add(full)
            self._graph.initializer.append(numpy_helper.from_array(value, full))
        return full


_MINUS_INFINITY, _MASK = -3.4e38, -1e4
_COUNTED_AT_ONCE = 8
_LARGEST = 65504.0
_OVERFLOWS_FROM = float(np.nextafter(np.float32(65520), np.float32(0)))
"""The largest float32 that still rounds to a finite float16."""


def _saturate(source: str, target: str, shared: _SharedConstants, elem_type: int, version: int) -> onnx.NodeProto:
    if version < 11:
        return helper.make_node("Clip", [source], [target], name=target, min=-_LARGEST, max=_LARGEST)
    dtype = FLOAT_TYPES[elem_type]
    bounds = [shared("lowest", np.array(-_LARGEST, dtype)), shared("largest", np.array(_LARGEST, dtype))]
    return helper.make_node("Clip", [source, *bounds], [target], name=target)


class _Counter:
    """Counts ``|raw| >= 65520`` of tensors in graph order.

    Counting costs several passes over a tensor, a sum of squares one. So a few tensors at a time are counted only where
    the sum of their squares is so large, or NaN, that there may be something to count.
    """

    def __init__(self, shared: _SharedConstants) -> None:
        self._shared = shared
        self._pending: list[tuple[str, str]] = []
        self._elem_type: int = onnx.TensorProto.FLOAT
        self._parts: list[str] = []
        self.number = 0

    def add(self, raw: str, rounded: str, elem_type: int) -> list[onnx.NodeProto]:
        """Nodes for one more tensor."""
        nodes = self._flush() if self._pending and elem_type != self._elem_type else []
        self._elem_type = elem_type
        self.number += 1
        square = f"{rounded}/squares"
        self._pending.append((raw, square))
        nodes.append(helper.make_node("ReduceSumSquare", [rounded], [square], name=square, keepdims=0))
        return [*nodes, *(self._flush() if len(self._pending) == _COUNTED_AT_ONCE else [])]

    def finish(self) -> list[onnx.NodeProto]:
        """Nodes for what is left, and the output."""
        nodes = self._flush() if self._pending else []
        return [*nodes, helper.make_node("Concat", self._parts, [OVERFLOW_OUTPUT], name=OVERFLOW_OUTPUT, axis=0)]

    def _flush(self) -> list[onnx.NodeProto]:
        pending, self._pending = self._pending, []
        dtype, number = FLOAT_TYPES[self._elem_type], len(pending)
        total, fits, counts = (f"{pending[-1][1]}/{word}" for word in ("total", "fit", "counts"))
        self._parts.append(counts)
        exact = [node for raw, square in pending for node in self._exact(raw, square, dtype)]
        exact.append(
            helper.make_node("Concat", [f"{square}/count" for _, square in pending], [f"{counts}/exact"], axis=0)
        )
        zeros = self._shared(f"zeros{number}", np.zeros(number, np.int64))
        none = helper.make_node("Identity", [zeros], [f"{counts}/none"])
        branches = {
            name: helper.make_graph(
                nodes, name, [], [helper.make_tensor_value_info(output, onnx.TensorProto.INT64, [number])]
            )
            for name, nodes, output in (
                ("then_branch", [none], f"{counts}/none"),
                ("else_branch", exact, f"{counts}/exact"),
            )
        }
        limit = self._shared("square", np.array(_LARGEST**2, dtype))
        return [
            helper.make_node("Sum", [square for _, square in pending], [total], name=total),
            helper.make_node("Less", [total, limit], [fits], name=fits),
            helper.make_node("If", [fits], [counts], name=counts, **branches),
        ]

    def _exact(self, raw: str, prefix: str, dtype: type[np.floating]) -> list[onnx.NodeProto]:
        limit = self._shared("limit", np.array(_OVERFLOWS_FROM, dtype))
        one = self._shared("one", np.array([1], np.int64))
        return [
            helper.make_node("Abs", [raw], [f"{prefix}/abs"]),
            helper.make_node("Greater", [f"{prefix}/abs", limit], [f"{prefix}/over"]),
            helper.make_node("Cast", [f"{prefix}/over"], [f"{prefix}/ones"], to=onnx.TensorProto.INT64),
            helper.make_node("ReduceSum", [f"{prefix}/ones"], [f"{prefix}/sum"], keepdims=0),
            helper.make_node("Reshape", [f"{prefix}/sum", one], [f"{prefix}/count"]),
        ]
