"""Builds the graph view from a proto: values, ops, subgraphs, inlined functions, and the list of file nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto

from ort_rknpu.errors import ModelError
from ort_rknpu.graph import Dim, Graph, Op, Shape, Value
from ort_rknpu.model.read import dtype_name, read_tensor
from ort_rknpu.model.shapes import Overrides

MAX_NODES = 1_000_000
"""Functions that call functions can blow a small file up without bound; beyond this the model is refused."""

FunctionKey = tuple[str, str, str]


_FLATTENING = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
"""Ops whose ``axis`` is 1 where absent before opset 13 and the last since: an :class:`Op` carries the older default."""


@dataclass(frozen=True)
class NodeInfo:
    """One node of the file; ``name`` is path-like within subgraphs and functions."""

    index: int
    name: str
    op_type: str
    domain: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    proto: onnx.NodeProto | None = field(default=None, compare=False, repr=False)


@dataclass
class Built:
    """A graph not yet resolved, with what resolving needs of the file."""

    graph: Graph
    nodes: list[NodeInfo]
    opsets: Mapping[str, int]
    ir_version: int
    protos: dict[Op, onnx.NodeProto] = field(default_factory=dict)
    op_opsets: dict[Op, Mapping[str, int]] = field(default_factory=dict)
    types: dict[Value, onnx.TypeProto] = field(default_factory=dict)
    declared: dict[Value, onnx.TypeProto] = field(default_factory=dict)


def build_graph(proto: onnx.ModelProto, overrides: Overrides, base: str | None) -> Built:
    """The graph view of ``proto`` before shapes are resolved.

    Raises:
        ModelError: a tensor that nothing produces or two nodes produce, a cycle, a recursive function.
    """
    return _Builder(proto, overrides, base).build()


def type_shape(type_proto: onnx.TypeProto) -> Shape | None:
    """The tensor type's shape, None for an unknown rank and for anything that is no tensor."""
    if not type_proto.HasField("tensor_type") or not type_proto.tensor_type.HasField("shape"):
        return None
    return tuple(_proto_dim(d) for d in type_proto.tensor_type.shape.dim)


def _proto_dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        # exporters write -1 or 0 for "any"; a true size of 0 is rare and reaches us by inference
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None if isinstance(dim.dim_param, str) else None


def type_dtype(type_proto: onnx.TypeProto) -> str | None:
    """The tensor type's element type by name, None for anything that is no tensor."""
    return dtype_name(type_proto.tensor_type.elem_type) if type_proto.HasField("tensor_type") else None


def set_type_shape(type_proto: onnx.TypeProto, shape: Shape) -> None:
    """Writes ``shape`` into a tensor type."""
    target = type_proto.tensor_type.shape
    target.Clear()
    target.SetInParent()
    for size in shape:
        dim = target.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size


def _standard(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {_standard(o.domain): o.version for o in imports}


class _Scope:
    """Names visible to the nodes of one graph or function body."""

    def __init__(
        self,
        parent: _Scope | None,
        prefix: str,
        opsets: Mapping[str, int],
        origins: tuple[int, ...] = (),
        arguments: Mapping[str, AttributeProto] | None = None,
        calls: tuple[FunctionKey, ...] = (),
    ) -> None:
        self.parent = parent
        self.prefix = prefix
        self.opsets = opsets
        self.origins = origins
        self.arguments: Mapping[str, AttributeProto] | None = arguments
        self.calls = calls
        self.values: dict[str, Value] = {}
        self.omitted: set[str] = parent.omitted if parent is not None else set()

    def find(self, name: str) -> Value | None:
        """The value of this name here or in an enclosing graph."""
        scope: _Scope | None = self
        while scope is not None:
            value = scope.values.get(name)
            if value is not None:
                return value
            scope = scope.parent
        return None


class _Builder:
    def __init__(self, proto: onnx.ModelProto, overrides: Overrides, base: str | None) -> None:
        self.proto = proto
        self.overrides = overrides
        self.base = base
        self.functions: dict[FunctionKey, onnx.FunctionProto] = {
            (_standard(f.domain), f.name, getattr(f, "overload", "")): f for f in proto.functions
        }
        self.built = Built(Graph(), [], _opsets(proto.opset_import), proto.ir_version)

    def build(self) -> Built:
        try:
            self.built.graph = self.add_graph(self.proto.graph, _Scope(None, "", self.built.opsets))
        except (TypeError, AttributeError) as error:
            # protobuf hands out bytes instead of str for text that is not UTF-8
            raise ModelError(f"the model is damaged: a name in it is no UTF-8 text ({error})") from error
        return self.built

    def add_graph(self, proto: onnx.GraphProto, scope: _Scope) -> Graph:
        graph = Graph(name=proto.name)
        for tensor in proto.initializer:
            const = read_tensor(tensor, self.base)
            dtype = dtype_name(tensor.data_type)
            scope.values[tensor.name] = Value(scope.prefix + tensor.name, tensor.dims, dtype, const, constant=True)
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            dtype = dtype_name(sparse.values.data_type)
            scope.values[name] = Value(scope.prefix + name, sparse.dims, dtype, constant=True)
        for info in proto.input:
            if info.name not in scope.values:  # an input with a default value is a constant to the compiler
                value = scope.values[info.name] = Value(scope.prefix + info.name)
                self.set_input_type(value, info, scope)
                graph.inputs.append(value)
        declared = {info.name: info.type for info in (*proto.value_info, *proto.output) if info.HasField("type")}
        self.add_nodes(graph, proto.node, scope, declared, {})
        for info in proto.output:
            found = scope.find(info.name)
            if found is None:
                raise ModelError(f"output {scope.prefix + info.name!r} is produced by no node")
            graph.outputs.append(found)
        return graph

    def set_input_type(self, value: Value, info: onnx.ValueInfoProto, scope: _Scope) -> None:
        kind = onnx.TypeProto()
        kind.CopyFrom(info.type)
        if scope.parent is None and kind.HasField("tensor_type"):
            shape = self.overrides.inputs.get(info.name, type_shape(kind))
            if shape is not None:
                symbols = self.overrides.symbols
                set_type_shape(kind, tuple(symbols.get(d, d) if isinstance(d, str) else d for d in shape))
        self.built.types[value] = kind
        value.shape, value.dtype = type_shape(kind), type_dtype(kind)

    def add_nodes(
        self,
        graph: Graph,
        nodes: Sequence[onnx.NodeProto],
        scope: _Scope,
        declared: Mapping[str, onnx.TypeProto],
        bound: Mapping[str, Value],
    ) -> None:
        """Adds ``nodes`` to ``graph``; outputs named in ``bound`` are those values, the others are new."""
        for node in nodes:
            for name in node.output:
                if not name:
                    continue
                if name in scope.values:
                    raise ModelError(f"tensor {scope.prefix + name!r} is produced more than once")
                value = scope.values[name] = bound.get(name) or Value(scope.prefix + name)
                kind = declared.get(name)
                if kind is not None:
                    self.declare(value, kind)
        waiting = {scope.values[name] for node in nodes for name in node.output if name}
        in_order = True
        for node in nodes:
            index = len(self.built.nodes)
            texts = (node.name, node.op_type, node.domain, *(a.name for a in node.attribute))
            if not all(isinstance(text, str) for text in texts):
                raise ModelError(f"the model is damaged: node {index} holds names that are no UTF-8 text")
            name = scope.prefix + (node.name or f"{node.op_type}_{index}")
            domain, inputs_of, outputs_of = _standard(node.domain), tuple(node.input), tuple(node.output)
            info = NodeInfo(index, name, node.op_type, domain, outputs_of, inputs_of, node)
            self.built.nodes.append(info)
            if index >= MAX_NODES:
                raise ModelError(f"the model has more than {MAX_NODES} nodes once its functions are inlined")
            inputs = [self.find_input(name, scope, info) for name in node.input]
            outputs = [scope.values[name] if name else Value("") for name in node.output]
            in_order = in_order and waiting.isdisjoint(v for v in inputs if v is not None)
            waiting.difference_update(outputs)
            key = (info.domain, node.op_type, getattr(node, "overload", ""))
            if key in self.functions:
                self.add_call(graph, node, info, key, inputs, outputs, scope)
            else:
                in_order = self.add_op(graph, node, info, inputs, outputs, scope, waiting) and in_order
        if not in_order:
            try:
                graph.sort()
            except ValueError as error:
                raise ModelError(f"the nodes of graph {graph.name!r} form a cycle") from error

    def find_input(self, name: str, scope: _Scope, info: NodeInfo) -> Value | None:
        if not name:
            return None
        value = scope.find(name)
        if value is None and name not in scope.omitted:
            raise ModelError(f"node {info.name!r} ({info.op_type}) reads {name!r}, which nothing produces")
        return value

    def declare(self, value: Value, kind: onnx.TypeProto) -> None:
        """Takes over what the file says of a tensor; shapes no longer hold once the caller set input shapes."""
        if self.overrides:
            if not kind.HasField("tensor_type"):
                return
            bare = onnx.TypeProto()
            bare.tensor_type.elem_type = kind.tensor_type.elem_type
            kind = bare
        self.built.declared[value] = kind

    def add_op(
        self,
        graph: Graph,
        node: onnx.NodeProto,
        info: NodeInfo,
        inputs: list[Value | None],
        outputs: list[Value],
        scope: _Scope,
        waiting: set[Value],
    ) -> bool:
        """Adds one op; False if its subgraphs read a value that comes later in the file."""
        node = _bind_attributes(node, scope.arguments)
        attributes: dict[str, Any] = {}
        subgraphs: dict[str, Graph] = {}
        in_order = True
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.type == AttributeProto.GRAPH else list(attribute.graphs)
            if not graphs:
                attributes[attribute.name] = attribute_value(attribute, self.base)
            for position, body in enumerate(graphs):
                label = attribute.name if attribute.type == AttributeProto.GRAPH else f"{attribute.name}[{position}]"
                inner = _Scope(
                    scope, f"{info.name}/{label}/", scope.opsets, scope.origins, scope.arguments, scope.calls
                )
                subgraphs[label] = self.add_graph(body, inner)
                in_order = in_order and waiting.isdisjoint(_captured(subgraphs[label]))
        if node.op_type in _FLATTENING and info.domain == "" and scope.opsets.get("", 1) < 13:
            attributes.setdefault("axis", 1)
        op = Op(
            node.op_type,
            inputs,
            outputs,
            attributes,
            name=info.name,
            domain=info.domain,
            origins=(*scope.origins, info.index),
            subgraphs=subgraphs,
        )
        graph.add(op)
        self.built.protos[op] = node
        if scope.opsets is not self.built.opsets:
            self.built.op_opsets[op] = scope.opsets
        return in_order

    def add_call(
        self,
        graph: Graph,
        node: onnx.NodeProto,
        info: NodeInfo,
        key: FunctionKey,
        inputs: list[Value | None],
        outputs: list[Value],
        scope: _Scope,
    ) -> None:
        """Inlines the function that ``node`` calls."""
        if key in scope.calls:
            raise ModelError(f"function {key[1]!r} of domain {key[0]!r} calls itself")
        function = self.functions[key]
        if len(inputs) > len(function.input) or len(outputs) > len(function.output):
            raise ModelError(f"node {info.name!r} does not fit the function {key[1]!r} that it calls")
        arguments = {a.name: a for a in function.attribute_proto}
        arguments.update((a.name, a) for a in _bind_attributes(node, scope.arguments).attribute)
        opsets = _opsets(function.opset_import) or scope.opsets
        inner = _Scope(None, f"{info.name}/", opsets, (*scope.origins, info.index), arguments, (*scope.calls, key))
        for name, value in zip(function.input, inputs):
            if value is not None:
                inner.values[name] = value
            else:
                inner.omitted.add(name)
        inner.omitted.update(function.input[len(inputs) :])
        bound = {name: value for name, value in zip(function.output, outputs) if name not in function.input}
        declared = {v.name: v.type for v in getattr(function, "value_info", ()) if v.HasField("type")}
        self.add_nodes(graph, function.node, inner, declared, bound)
        for name, value in zip(function.output, outputs):
            source = inner.values.get(name)
            if source is None:
                raise ModelError(f"function {key[1]!r} does not produce its output {name!r}")
            if source is not value:
                op = Op("Identity", [source], [value], name=info.name, origins=inner.origins)
                self.built.protos[op] = onnx.helper.make_node("Identity", [name], [name + "_out"])
                graph.add(op)


def _bind_attributes(node: onnx.NodeProto, arguments: Mapping[str, AttributeProto] | None) -> onnx.NodeProto:
    """The node with references to the function's attributes replaced by what the call passes."""
    if arguments is None or not any(a.ref_attr_name for a in node.attribute):
        return node
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            result.attribute.append(attribute)
        elif attribute.ref_attr_name in arguments:
            bound = result.attribute.add()
            bound.CopyFrom(arguments[attribute.ref_attr_name])
            bound.name = attribute.name
    return result


def attribute_value(attribute: AttributeProto, base: str | None) -> Any:
    """The attribute as a plain Python value; a tensor as an array, None where its data is absent or large."""
    match attribute.type:
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.STRING:
            return attribute.s.decode("utf-8", "replace")
        case AttributeProto.INTS:
            return list(attribute.ints)
        case AttributeProto.FLOATS:
            return list(attribute.floats)
        case AttributeProto.STRINGS:
            return [s.decode("utf-8", "replace") for s in attribute.strings]
        case AttributeProto.TENSOR:
            return read_tensor(attribute.t, base)
        case AttributeProto.TENSORS:
            return [read_tensor(t, base) for t in attribute.tensors]
        case _:
            return onnx.helper.get_attribute_value(attribute)


def _captured(graph: Graph) -> Iterable[Value]:
    """Values that ops of ``graph`` or of its subgraphs read."""
    for op in graph.ops:
        yield from (v for v in op.inputs if v is not None)
        for body in op.subgraphs.values():
            yield from _captured(body)
    yield from graph.outputs
