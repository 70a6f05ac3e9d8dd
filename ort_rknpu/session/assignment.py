"""Which nodes of a model the NPU takes, in which partition, as the check says; partitions as models of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import onnx
import onnx.inliner

from custom_ops.loading import Source, read_model
from ort_rknpu.check import check
from ort_rknpu.errors import OptionError
from ort_rknpu.graph import Dim
from ort_rknpu.model import Model
from ort_rknpu.model.read import dtype_number
from ort_rknpu.report import NodeResult, PartitionResult, TargetResult
from ort_rknpu.session.half import MOVES, CompiledGroup
from ort_rknpu.session.half_forms import LAYOUT_OPS
from ort_rknpu.session.options import ProviderOptions
from ort_rknpu.session.proto import GraphIndex, node_id, outer_reads, owning_nodes


@dataclass(frozen=True)
class Assignment:
    """One model on one target.

    Attributes:
        proto: the model without external data, model-local functions inlined, not to be changed.
        result: the check's answer.
        groups: what each compiled op computes.
        values: type and shape of every tensor of the main graph that is known; a dynamic batch counts as 1.
        types: dtype and shape of tensors in words.
    """

    proto: onnx.ModelProto
    result: TargetResult
    groups: tuple[CompiledGroup, ...]
    values: tuple[onnx.ValueInfoProto, ...]
    types: Mapping[str, str]

    @cached_property
    def index(self) -> GraphIndex:
        """Look-ups over the main graph."""
        return GraphIndex(self.proto, self.values)

    @cached_property
    def nodes(self) -> dict[str, NodeResult]:
        """Node id -> the check's answer, for nodes of the main graph."""
        found: dict[str, NodeResult] = {}
        for node in self.result.nodes:
            identity = next((name for name in node.outputs if name), "")
            if identity in self.index.nodes:
                found[identity] = node
        return found

    @cached_property
    def partition_of(self) -> dict[str, int]:
        """Node id -> the partition that runs it.

        A split node belongs to the last of its partitions. A node that costs nothing goes with what it reads, or else
        with what reads it; one that computes a constant belongs to none. A node that only moves data, and that the
        compiler swapped with a later one, goes with its first reader, so that partitions run one after another here
        as there.
        """
        found: dict[str, int] = {}
        for identity, node in self.nodes.items():
            if isinstance(node.partition, int):
                found[identity] = node.partition
            elif node.partition:
                found[identity] = max(node.partition)
        index = self.index
        idle = [
            i for i in index.nodes if i not in found and not all(n in index.computed for n in index.nodes[i].output)
        ]
        for identity in idle:
            producers = (index.producer.get(name) for name in index.nodes[identity].input)
            behind = next((found[p] for p in producers if p in found), None)
            if behind is not None:
                found[identity] = behind
        for identity in reversed(list(index.nodes)):
            if identity in found and index.nodes[identity].op_type in MOVES:
                found[identity] = min([found[identity], *(found[r] for r in self._readers(identity) if r in found)])
        for identity in reversed(idle):
            if identity not in found:
                ahead = next((found[reader] for reader in self._readers(identity) if reader in found), None)
                if ahead is not None:
                    found[identity] = ahead
        return found

    def _readers(self, identity: str) -> list[str]:
        return [r for name in self.index.nodes[identity].output for r in self.index.readers.get(name, ())]

    def partition(self, number: int) -> PartitionResult:
        """The partition called ``number``.

        Raises:
            OptionError: there is none; says which there are.
        """
        partitions = self.result.partitions
        if not 0 <= number < len(partitions):
            raise OptionError(f"no partition {number}; the model has {len(partitions)}, numbered from 0")
        return partitions[number]

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Names of nodes that the NPU does not take, wholly or in part."""
        return tuple(node.name for node in self.result.nodes if node.verdict not in ("npu", "folded"))

    def labels(self, running: onnx.ModelProto) -> dict[str, str]:
        """Name of every node of a rewritten model, and of every tensor of this one -> its partition: ``npu 0``."""
        index = GraphIndex(running)
        found = {}
        for identity, owner in owning_nodes(index, self.index).items():
            number = self.partition_of.get(owner)
            if number is not None:
                for name in (index.nodes[identity].name, *self.index.nodes[owner].output):
                    found[name] = f"{self.result.partitions[number].device} {number}"
        return found

    def boundary(self, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the tensors that enter and leave a partition, as the model's own nodes see it."""
        index = self.index
        members = {identity for identity, found in self.partition_of.items() if found == number}
        inputs: dict[str, None] = {}
        outputs: dict[str, None] = {}
        for identity in index.nodes:
            if identity not in members:
                continue
            node = index.nodes[identity]
            for name in dict.fromkeys(outer_reads(node)):
                known = name in index.producer or name in index.inputs
                if known and name not in index.computed and index.producer.get(name) not in members:
                    inputs[name] = None
            for name in node.output:
                if name in index.outputs or any(r not in members for r in index.readers.get(name, ())):
                    outputs[name] = None
        return tuple(inputs), tuple(name for name in outputs if name)

    def extract(self, number: int) -> onnx.ModelProto:
        """A partition as a model: its nodes, what they need of constants, its boundary tensors as inputs and outputs.

        Raises:
            OptionError: there is no such partition, or only inserted ops are in it.
        """
        self.partition(number)
        index = self.index
        inputs, outputs = self.boundary(number)
        needed = {identity for identity, found in self.partition_of.items() if found == number}
        if not needed:
            raise OptionError(f"partition {number} holds no node of the model, only ops that the compiler inserts")
        waiting = list(needed)
        while waiting:
            for name in outer_reads(index.nodes[waiting.pop()]):
                producer = index.producer.get(name)
                if producer is not None and name in index.computed and producer not in needed:
                    needed.add(producer)
                    waiting.append(producer)
        result = onnx.ModelProto()
        result.CopyFrom(self.proto)
        graph = result.graph
        graph.name = f"{graph.name or 'graph'}_partition{number}"
        nodes = [node for node in graph.node if node_id(node) in needed]
        read = {name for node in nodes for name in outer_reads(node)} | set(outputs)
        initializers = [tensor for tensor in graph.initializer if tensor.name in read]
        sparse = [tensor for tensor in graph.sparse_initializer if tensor.values.name in read]
        for field, kept in (("node", nodes), ("initializer", initializers), ("sparse_initializer", sparse)):
            graph.ClearField(field)
            getattr(graph, field).extend(kept)
        own = {value.name: value for value in (*self.values, *self.proto.graph.input, *self.proto.graph.output)}
        for field, names in (("input", inputs), ("output", outputs)):
            graph.ClearField(field)
            getattr(graph, field).extend(own.get(name) or onnx.ValueInfoProto(name=name) for name in names)
        graph.ClearField("value_info")
        return result


def assign(source: Source, options: ProviderOptions) -> Assignment:
    """Checks a model for the provider's target and maps the answer to the nodes of its main graph.

    Args:
        source: path, bytes or ModelProto; external data is not read.
        options: the provider's.

    Raises:
        ModelError: the model cannot be used.
    """
    proto, _ = read_model(source)
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    model = Model.load(source, _single_batch(proto) or None)
    target = options.target
    report = check(model, target.soc.name, target.precision, target.toolkit, options.rules)
    result = report.targets[0]
    return Assignment(proto, result, _groups(result), tuple(_values(model)), report.values)


def _groups(result: TargetResult) -> tuple[CompiledGroup, ...]:
    """What each row computes: a layout row, which stands for ops it serves too, those that move data alone."""
    ids = {node.name: next((name for name in node.outputs if name), "") for node in result.nodes}
    computed = {name for row in result.compiled if row.op not in LAYOUT_OPS for name in row.nodes}
    moves = {node.name for node in result.nodes if node.op_type in MOVES}
    groups = []
    for row in result.compiled:
        serving = row.op in LAYOUT_OPS
        nodes = [name for name in row.nodes if not serving or name in moves or name not in computed]
        found = frozenset(ids[name] for name in nodes if ids.get(name))
        if found:
            groups.append(CompiledGroup(row.op, row.device, found, frozenset(name for name in row.inputs if name)))
    return tuple(groups)


def _single_batch(proto: onnx.ModelProto) -> Mapping[str, list[Dim]]:
    """Shapes of inputs whose first dimension is open, with 1 in its place: the toolkit builds for one batch size."""
    initializers = {tensor.name for tensor in proto.graph.initializer}
    shapes: dict[str, list[Dim]] = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        if value.name in initializers or not kind.HasField("shape") or not kind.shape.dim:
            continue
        dims: list[Any] = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
        if not isinstance(dims[0], int):
            shapes[value.name] = [1, *dims[1:]]
    return shapes


def _values(model: Model) -> list[onnx.ValueInfoProto]:
    found = []
    for value in model.graph.values():
        elem_type = dtype_number(value.dtype)
        if elem_type is not None and value.name:
            found.append(onnx.helper.make_tensor_value_info(value.name, elem_type, value.shape))
    return found
