"""``prepare``: rewrites a model so that no ex* node is left which ONNX Runtime does not know."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import onnx
import onnx.inliner
import onnx.version_converter
from onnx import TensorProto

from custom_ops import lowering, python_form, runtime, schemas
from custom_ops.backend_contracts import BACKEND_CONTRACTS
from custom_ops.checks import check_ports, find_contract, resolve_attributes, writes_bool
from custom_ops.contracts import SOURCE_DOMAINS, AttributeValue, Contract, is_ex_name
from custom_ops.elementwise import check_type
from custom_ops.errors import ArgumentError, ModelError, OpError, UnknownOpError
from custom_ops.loading import Source, embed_external_data, graphs, read_model, save_model
from custom_ops.lowering import Builder, Names
from custom_ops.shapes import Shape, infer_shapes

Ops = Literal["native", "python"]
MIN_OPSET = 13
"""Lowest version of the default domain that nodes are written for; older models are converted to it."""

_SMALL = 4096


class IgnoredAttributeWarning(UserWarning):
    """A node carries an attribute that the toolkit silently ignores, and so do we."""


@dataclass(frozen=True)
class Call:
    """One ex node with everything the contract needs to be known of it."""

    node: onnx.NodeProto
    contract: Contract
    attributes: Mapping[str, AttributeValue]
    shapes: Sequence[Shape | None]
    element_type: int
    after_transpose: bool
    constants: frozenset[int]


def is_ex_node(node: onnx.NodeProto) -> bool:
    """Whether a node is meant as one of the toolkit's operators, or as another back end's in its own domain."""
    if node.domain in (*SOURCE_DOMAINS, "ai.onnx"):
        return is_ex_name(node.op_type)
    return node.op_type in BACKEND_CONTRACTS and node.domain in BACKEND_CONTRACTS[node.op_type].domains


def _label(node: onnx.NodeProto) -> str:
    return f"node {node.name or next(iter(node.output), '')!r} ({node.op_type})"


def _functions_to_inline(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """Model-local functions that hold an ex node, themselves or through another function."""
    holding: set[tuple[str, str]] = set()
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for function in model.functions:
        key = (function.domain, function.name)
        body = onnx.GraphProto(node=function.node)
        nodes = [node for graph in graphs(body) for node in graph.node]
        calls[key] = {(node.domain, node.op_type) for node in nodes}
        if any(is_ex_node(node) and (node.domain, node.op_type) not in calls for node in nodes):
            holding.add(key)
    while True:
        more = {key for key, called in calls.items() if key not in holding and called & holding}
        if not more:
            return sorted(holding)
        holding |= more


def _ex_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    local = {(function.domain, function.name) for function in model.functions}
    for graph in graphs(model.graph):
        for node in graph.node:
            if is_ex_node(node) and (node.domain, node.op_type) not in local:
                yield node


def has_ex_nodes(model: onnx.ModelProto) -> bool:
    """Whether any graph or function of the model holds an ex node."""
    return bool(_functions_to_inline(model)) or next(_ex_nodes(model), None) is not None


def _opset(model: onnx.ModelProto) -> int:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            return entry.version
    raise ModelError("the model imports no version of the default domain")


def _raise_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    version = _opset(model)
    if version >= MIN_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, MIN_OPSET)
    except Exception as error:
        raise ModelError(f"opset {version} cannot be converted to {MIN_OPSET}, which ex nodes need: {error}") from error


def _strip_initializer_inputs(model: onnx.ModelProto) -> None:
    """Takes initializers out of graph.input: listed there they are overridable, which stops constant folding."""
    names = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in names]
    if len(kept) < len(model.graph.input):
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.ir_version = max(model.ir_version, 4)


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with inferred types and shapes, without the data of large initializers."""
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = model.graph
    light.graph.name = graph.name or "graph"
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(light.graph, name).extend(getattr(graph, name))
    for tensor in graph.initializer:
        if tensor.ByteSize() <= _SMALL:
            light.graph.initializer.append(tensor)
        else:
            light.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    try:
        return onnx.shape_inference.infer_shapes(light, data_prop=True)
    except Exception:  # a broken node elsewhere; what is wrong is said per ex node, or by ONNX Runtime
        return light


Types = dict[str, onnx.TypeProto]


@dataclass(frozen=True)
class Scope:
    """What is known of the names that nodes of one graph can read."""

    types: Types
    constants: set[str]
    transposed: set[str]

    def enter(self, graph: onnx.GraphProto) -> Scope:
        """The scope of a graph within this one; ``graph`` has inferred types."""
        types, constants, transposed = dict(self.types), set(self.constants), set(self.transposed)
        for tensor in graph.initializer:
            types[tensor.name] = schemas.tensor_type(tensor.data_type, tuple(tensor.dims))
            constants.add(tensor.name)
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.HasField("tensor_type"):
                types[value.name] = value.type
        for node in graph.node:
            if node.op_type in ("Transpose", "Constant"):
                (transposed if node.op_type == "Transpose" else constants).update(node.output)
        return Scope(types, constants, transposed)


def _element_type(contract: Contract, node: onnx.NodeProto, types: Types) -> int:
    """The type that ``T`` stands for; float32, the only one the toolkit writes, where nothing tells."""
    found: int = TensorProto.UNDEFINED
    for port, name in zip(contract.inputs, node.input):
        known = types.get(name)
        if known is None or not known.tensor_type.elem_type:
            continue
        element = known.tensor_type.elem_type
        fixed = {"bool": TensorProto.BOOL, "int32": TensorProto.INT32}.get(port.type)
        if fixed is not None:
            if element != fixed:
                raise OpError(f"input {port.name} must be {port.type}, not {TensorProto.DataType.Name(element)}")
            continue
        name_of = schemas.ELEMENT_TYPES
        if name_of.get(element) not in contract.types:
            valid = ", ".join(contract.types)
            raise OpError(f"input {port.name} is {TensorProto.DataType.Name(element)}; allowed: {valid}")
        if found not in (TensorProto.UNDEFINED, element):
            raise OpError(f"input {port.name} is {name_of[element]}, others {name_of[found]}")
        found = element
    return found or TensorProto.FLOAT


def _analyse(node: onnx.NodeProto, scope: Scope) -> Call:
    """Checks one ex node against its contract."""
    label = _label(node)
    try:
        contract = find_contract(node.op_type)
        check_ports(contract, node.input, node.output)
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes = resolve_attributes(contract, given)
        shapes = [schemas.shape_of(scope.types.get(name)) if name else None for name in node.input]
        infer_shapes(contract.name, shapes, attributes)
        element_type = _element_type(contract, node, scope.types)
        check_type(contract.name, attributes, schemas.ELEMENT_TYPES[element_type])
    except UnknownOpError as error:
        raise UnknownOpError(f"{label}: {error}") from None
    except OpError as error:
        raise OpError(f"{label}: {error}") from None
    for name in given:
        if name in contract.ignored:
            warnings.warn(
                f"{label}: the toolkit ignores attribute {name} and uses "
                + ", ".join(f"{a.name}={attributes[a.name]}" for a in contract.attributes),
                IgnoredAttributeWarning,
                stacklevel=2,
            )
    padding: list[Shape | None] = [None] * (len(contract.inputs) - len(shapes))
    constants = frozenset(i for i, name in enumerate(node.input) if name in scope.constants)
    after_transpose = node.input[0] in scope.transposed
    return Call(node, contract, attributes, [*shapes, *padding], element_type, after_transpose, constants)


Emit = Callable[[Call, Builder, list[str]], list[str]]


def _emit_native(call: Call, builder: Builder, inputs: list[str]) -> list[str]:
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return lowering.lower(call.contract.name, builder, inputs)


def _emit_python(raises: bool) -> Emit:
    def emit(call: Call, builder: Builder, inputs: list[str]) -> list[str]:
        return python_form.emit(builder, call.contract, call.attributes, inputs, raises)

    return emit


def _rename(nodes: list[onnx.NodeProto], old: str, new: str) -> None:
    for node in nodes:
        for ports in (node.input, node.output):
            for index, name in enumerate(ports):
                if name == old:
                    ports[index] = new


class _Rewriter:
    """Replaces the ex nodes of one model in place."""

    def __init__(self, model: onnx.ModelProto, emit: Emit, float32_only: frozenset[str]) -> None:
        self.emit = emit
        self.float32_only = float32_only
        self.opset = _opset(model)
        self.local = {(function.domain, function.name) for function in model.functions}
        taken: set[str] = set()
        for graph in graphs(model.graph):
            taken.update(t.name for t in (*graph.initializer, *graph.input, *graph.output, *graph.value_info))
            for node in graph.node:
                taken.update((node.name, *node.input, *node.output))
        self.names = Names(taken)

    def graph(self, graph: onnx.GraphProto, inferred: onnx.GraphProto, outer: Scope) -> None:
        """Rewrites a graph and those inside it; ``inferred`` is its twin with types."""
        scope = outer.enter(inferred)
        result: list[onnx.NodeProto] = []
        for node, twin in zip(graph.node, inferred.node):
            for attribute, other in zip(node.attribute, twin.attribute):
                if attribute.type == onnx.AttributeProto.GRAPH:
                    self.graph(attribute.g, other.g, scope)
                elif attribute.type == onnx.AttributeProto.GRAPHS:
                    for inner, inner_twin in zip(attribute.graphs, other.graphs):
                        self.graph(inner, inner_twin, scope)
            if is_ex_node(node) and (node.domain, node.op_type) not in self.local:
                builder = self._replacement(_analyse(node, scope))
                result.extend(builder.nodes)
                graph.initializer.extend(builder.initializers)
            else:
                result.append(node)
        del graph.node[:]
        graph.node.extend(result)

    def _replacement(self, call: Call) -> Builder:
        """The nodes in the ex node's place; types that they have no kernel for are cast to float32 and back."""
        node = call.node
        casts = call.element_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
        if call.element_type == TensorProto.DOUBLE:
            casts = call.contract.name in self.float32_only
        builder = Builder(
            prefix=node.name or next(name for name in node.output if name),
            names=self.names,
            opset=self.opset,
            element_type=TensorProto.FLOAT if casts else call.element_type,
            shapes=call.shapes,
            attributes=call.attributes,
            after_transpose=call.after_transpose,
            constants=call.constants,
        )
        inputs = [
            builder.call("Cast", name, to=TensorProto.FLOAT) if name and casts and port.type == "T" else name
            for port, name in zip(call.contract.inputs, node.input)
        ]
        try:
            results = self.emit(call, builder, inputs)
        except OpError as error:
            raise OpError(f"{_label(call.node)}: {error}") from None
        for result, name, boolean in zip(results, node.output, writes_bool(call.contract, call.attributes)):
            if name and casts and not boolean:
                builder.nodes.append(onnx.helper.make_node("Cast", [result], [name], to=call.element_type))
                builder.nodes[-1].name = self.names.new(f"{builder.prefix}/Cast")
            elif name:
                _rename(builder.nodes, result, name)
        return builder


def rewrite(model: onnx.ModelProto, ops: Ops, raises: bool = False) -> onnx.ModelProto:
    """Replaces every ex node of a model whose external data is settled; the model given may be changed.

    Args:
        ops: ``native``: by ONNX and ONNX Runtime operators; ``python``: by Python ops.
        raises: whether a Python op that fails makes ``run()`` fail, see :mod:`custom_ops.python_form`.

    Raises:
        ModelError, OpError, UnknownOpError: as :func:`prepare`.
    """
    schemas.register()
    inline = _functions_to_inline(model)
    if inline:
        model = onnx.inliner.inline_selected_functions(model, inline)
    if next(_ex_nodes(model), None) is None:
        return model
    model = _raise_opset(model)
    _strip_initializer_inputs(model)
    if ops == "native":
        rewriter = _Rewriter(model, _emit_native, lowering.FLOAT32_ONLY)
    else:
        rewriter = _Rewriter(model, _emit_python(raises), frozenset())
    rewriter.graph(model.graph, _inferred(model).graph, Scope({}, set(), set()))
    if ops == "python":
        runtime.define_ops()
        model.opset_import.add(domain=python_form.DOMAIN, version=1)
    return model


def prepare(source: Source, ops: Ops = "native") -> onnx.ModelProto:
    """A model that does what ``source`` does without ex* nodes that ONNX Runtime does not know.

    Ex nodes are looked for in the default domain, ``ai.onnx.contrib`` and ``rknn``, other back ends' operators
    (:data:`custom_ops.backend_contracts.BACKEND_CONTRACTS`) in their own domain; in the main graph, control-flow
    bodies and model-local functions (which are inlined where they hold one). Each is checked against its contract
    (:data:`custom_ops.contracts.CONTRACTS`): attributes, inputs, and what is known of types and shapes. Initializers
    leave ``graph.input``. A model without ex nodes comes back as it is.

    Args:
        source: a path, bytes or a ModelProto, which is not changed. External data of a path is taken in as far
            as 2 GiB allow; beyond that it stays where it is, relative to the source's folder.
        ops: ``native`` replaces ex nodes by the ONNX and ONNX Runtime operators that run fastest; ``python`` by Python
            ops in a domain of their own, for sessions whose options went through :func:`register_custom_ops`.

    Returns:
        The new model. float16 and bfloat16 nodes compute in float32 between Casts.

    Raises:
        ModelError: ``source`` is no readable model.
        OpError: a node breaks its operator's contract; the message names it.
        UnknownOpError: an ex* operator that does not exist or has no public semantics.
        ArgumentError: ``ops`` is neither (a ValueError).
    """
    return _prepare(source, ops)[0]


def prepare_file(source: str | Path, target: str | Path, ops: Ops = "native") -> onnx.ModelProto:
    """:func:`prepare` from file to file. External data too large for one file is linked or copied beside ``target``.

    Raises:
        ModelError, OpError, UnknownOpError, ArgumentError: as :func:`prepare`; ModelError also where writing fails.
    """
    model, folder = _prepare(source, ops)
    save_model(model, Path(target), folder)
    return model


def _prepare(source: Source, ops: Ops) -> tuple[onnx.ModelProto, Path | None]:
    if ops not in get_args(Ops):
        raise ArgumentError(f"ops is {ops!r}; valid: {', '.join(get_args(Ops))}")
    read, folder = read_model(source)
    model = onnx.ModelProto()
    model.CopyFrom(read)
    if folder is not None:
        embed_external_data(model, folder)
    return rewrite(model, ops), folder
