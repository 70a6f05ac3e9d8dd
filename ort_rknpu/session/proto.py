"""A model proto's main graph by name: producers, readers, constants, element types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from onnx import numpy_helper

FLOAT_TYPES: dict[int, type[np.floating]] = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.DOUBLE: np.float64,
    onnx.TensorProto.FLOAT16: np.float16,
}


def node_id(node: onnx.NodeProto) -> str:
    """What names a node here: its first output, unique in a graph and kept when ex nodes are lowered."""
    return next((name for name in node.output if name), "")


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs a control-flow node carries."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def outer_reads(node: onnx.NodeProto) -> Iterator[str]:
    """Names a node reads: its own inputs and what its subgraphs read (a name defined inside may be among them)."""
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        for inner in graph.node:
            yield from outer_reads(inner)
        yield from (output.name for output in graph.output)


def drop_unused_constants(graph: onnx.GraphProto) -> None:
    """Takes out initializers and Constant nodes that nothing reads any more; ONNX Runtime would warn of each."""
    read = {name for node in graph.node for name in outer_reads(node)} | {output.name for output in graph.output}
    tensors = [tensor for tensor in graph.initializer if tensor.name in read]
    nodes = [node for node in graph.node if node.op_type != "Constant" or node.output[0] in read]
    if len(tensors) < len(graph.initializer):
        del graph.initializer[:]
        graph.initializer.extend(tensors)
    if len(nodes) < len(graph.node):
        del graph.node[:]
        graph.node.extend(nodes)


class GraphIndex:
    """Look-ups over the main graph of ``model``; a snapshot, taken when it is made.

    ``values`` tells types and shapes beyond those that the model itself carries.

    Attributes:
        nodes: node id -> node, in graph order.
        producer: tensor -> id of the node that writes it.
        readers: tensor -> ids of the nodes that read it, subgraphs included.
        inputs, outputs: names of the graph's inputs (initializers left out) and outputs.
        computed: tensors that depend on constants alone, constants included.
    """

    def __init__(self, model: onnx.ModelProto, values: Iterable[onnx.ValueInfoProto] = ()) -> None:
        graph = model.graph
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.nodes: dict[str, onnx.NodeProto] = {node_id(node): node for node in graph.node}
        self.producer: dict[str, str] = {}
        self.readers: dict[str, list[str]] = {}
        self.inputs = {value.name for value in graph.input} - set(self._initializers)
        self.outputs = {value.name for value in graph.output}
        self.computed: set[str] = {*self._initializers, *(t.values.name for t in graph.sparse_initializer)}
        self._types: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for value in (*graph.input, *graph.value_info, *graph.output, *values):
            kind = value.type.tensor_type
            if kind.elem_type:
                self._types[value.name] = kind.elem_type
            if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
                self._shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
        for tensor in graph.initializer:
            self._types[tensor.name] = tensor.data_type
            self._shapes[tensor.name] = tuple(tensor.dims)
        for identity, node in self.nodes.items():
            for name in node.output:
                self.producer[name] = identity
            for name in dict.fromkeys(outer_reads(node)):
                self.readers.setdefault(name, []).append(identity)
            random = node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial")
            if not random and all(name in self.computed for name in outer_reads(node)):
                self.computed.update(name for name in node.output if name)

    def constant(self, name: str) -> np.ndarray | None:
        """The data of an initializer or Constant node; None where it is computed, absent or kept outside the file."""
        tensor = self._initializers.get(name)
        if tensor is None:
            node = self.nodes.get(self.producer.get(name, ""))
            if node is None or node.op_type != "Constant":
                return None
            attribute = node.attribute[0]
            if attribute.name == "value_float":
                return np.array(attribute.f, np.float32)
            if attribute.name == "value_floats":
                return np.array(attribute.floats, np.float32)
            if attribute.name != "value":
                return None
            tensor = attribute.t
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return None
        return numpy_helper.to_array(tensor)

    def elem_type(self, name: str) -> int:
        """The ONNX element type; FLOAT where shape inference left it open."""
        return self._types.get(name) or onnx.TensorProto.FLOAT

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape where every dimension is known, else None."""
        return self._shapes.get(name)

    def single_reader(self, name: str) -> str | None:
        """The only reader of a tensor that is no graph output, else None."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self.outputs else None


def owning_nodes(rewritten: GraphIndex, originals: GraphIndex) -> dict[str, str]:
    """Id of every node of a rewritten graph -> id of the original node whose output it computes or helps to."""
    owners: dict[str, str] = {}
    for identity in reversed(list(rewritten.nodes)):
        outputs = rewritten.nodes[identity].output
        own = next((originals.producer[name] for name in outputs if name in originals.producer), None)
        if own is None:
            readers = (reader for name in outputs for reader in rewritten.readers.get(name, ()))
            own = next((owners[reader] for reader in readers if reader in owners), None)
        if own is not None:
            owners[identity] = own
    return owners


def opset(model: onnx.ModelProto) -> int:
    """The version of the standard domain that ``model`` imports; 1 where it imports none."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def attribute(node: onnx.NodeProto, name: str, default: object = None) -> object:
    """The value of an attribute, or ``default`` where the node does not carry it."""
    for found in node.attribute:
        if found.name == name:
            return onnx.helper.get_attribute_value(found)
    return default
