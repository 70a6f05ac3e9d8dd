"""One forward walk over a graph that resolves every shape, dtype and computable constant.

Each op is inferred by its schema's own function (onnx's, or that of :mod:`custom_ops.schemas`), with the constants
known so far; what the file declares fills gaps. Ops on known constants are evaluated at once, so that a Reshape behind
Shape -> Gather -> Concat sees its target shape. The cost is linear in the number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

from custom_ops import schemas
from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.model.build import Built, set_type_shape, type_dtype, type_shape
from ort_rknpu.model.control_flow import merge_shapes, resolve_bodies
from ort_rknpu.model.fold import MAX_FOLD_ELEMENTS, evaluate
from ort_rknpu.model.partial import MAX_ELEMENTS, forward, is_complete, shape_from
from ort_rknpu.model.read import dtype_name, dtype_number

MAX_DATA_ELEMENTS = 1 << 10
"""Shape functions read shapes, axes, pads and the like; larger constants are not handed to them."""
_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

_SHAPED = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
"""Op -> the input that is its output's shape."""
_CONSTANT_DTYPES = {"value_float": "float32", "value_floats": "float32", "value_int": "int64", "value_ints": "int64"}


def resolve_graph(built: Built) -> None:
    """Fills in shape, dtype, ``constant`` and ``const`` of every value of ``built.graph`` that can be known."""
    schemas.register()
    _Resolver(built).walk(built.graph)


@lru_cache(maxsize=4096)
def _schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


class _Resolver:
    def __init__(self, built: Built) -> None:
        self.built = built
        self.types = built.types
        self.tensors: dict[Value, onnx.TensorProto] = {}
        self.vectors: dict[Value, np.ndarray] = {}
        self.imports: dict[int, list[onnx.OperatorSetIdProto]] = {}

    def walk(self, graph: Graph) -> None:
        for op in graph.ops:
            if op.op_type == "Constant" and op.domain == "":
                self.constant(op)
            elif op.subgraphs:
                self.control_flow(op)
            else:
                self.op(op)

    # -- ordinary ops -----------------------------------------------------------------------------------------------

    def op(self, op: Op) -> None:
        inferred = self.infer(op)
        for position, value in enumerate(op.outputs):
            self.settle(value, inferred.get(position))
        if op.op_type in ("Shape", "Size") and op.domain == "" and self.known_shape(op):
            return
        known = all(v is None or v.constant for v in op.inputs)
        if not known and op.domain == "":
            self.propagate(op)
        if not known or op.op_type in _RANDOM or not (op.inputs or op.op_type == "ConstantOfShape"):
            return
        for value in op.outputs:
            value.constant = True
        self.fold(op)

    def known_shape(self, op: Op) -> bool:
        source = op.input(0)
        shape = None if source is None else source.static_shape
        if shape is None:
            return False
        if op.op_type == "Size":
            data = np.array(math.prod(shape), np.int64)
        else:
            end = op.attr("end")
            data = np.array(shape[op.attr("start", 0) : end], np.int64)
        self.set_const(op.outputs[0], data)
        return True

    def propagate(self, op: Op) -> None:
        """Carries shape vectors of which some elements are known, and lets them decide shapes."""
        source, result = op.input(0), op.outputs[0]
        if op.op_type == "Shape":
            if source is not None and source.shape is not None:
                dims = np.array(source.shape, dtype=object)
                self.keep_vector(result, dims[op.attr("start", 0) : op.attr("end")])
            return
        if op.op_type in _SHAPED:
            position = _SHAPED[op.op_type]
            target = self.vector(op.input(position))
            if target is not None and result.static_shape is None and source is not None:
                found = shape_from(op, source.shape, target)
                result.shape = merge_shapes(found, result.shape)
                self.types.pop(result, None)
        if self.vectors and any(v in self.vectors for v in op.inputs if v is not None):
            arrays = [self.vector(v) for v in op.inputs]
            if all(v is None or a is not None for v, a in zip(op.inputs, arrays)):
                vector = forward(op, self.built.protos[op], arrays)
                if vector is not None:
                    self.keep_vector(result, vector)

    def vector(self, value: Value | None) -> np.ndarray | None:
        """What is known of a small integer tensor's elements."""
        if value is None:
            return None
        if value.const is not None:
            small = value.const.size <= MAX_ELEMENTS and value.const.dtype.kind in "iu"
            return value.const if small else None
        return self.vectors.get(value)

    def keep_vector(self, value: Value, vector: np.ndarray) -> None:
        if is_complete(vector):
            self.set_const(value, vector.astype(np.int64))
        elif vector.size <= MAX_ELEMENTS:
            self.vectors[value] = vector

    def fold(self, op: Op) -> None:
        arrays = [None if v is None else v.const for v in op.inputs]
        if any(a is None and v is not None for a, v in zip(arrays, op.inputs)):
            return
        sizes = [v.static_shape for v in op.outputs]
        if any(s is None for s in sizes):
            if sum(a.size for a in arrays if a is not None) > MAX_DATA_ELEMENTS:
                return
        elif sum(math.prod(s) for s in sizes if s is not None) > MAX_FOLD_ELEMENTS:
            return
        results = evaluate(op, self.built.protos[op], arrays, self.opsets(op).get(op.domain, 1))
        if results is None:
            return
        for value, data in zip(op.outputs, results):
            if data.size <= MAX_FOLD_ELEMENTS:
                self.set_const(value, data)

    def set_const(self, value: Value, data: np.ndarray) -> None:
        value.const = data
        value.constant = True
        value.shape = data.shape
        value.dtype = value.dtype or _array_dtype(data)
        self.types.pop(value, None)

    def constant(self, op: Op) -> None:
        attributes = self.built.protos[op].attribute
        if len(attributes) != 1:
            return
        attribute = attributes[0]
        value = op.outputs[0]
        value.constant = True
        if attribute.name == "value":
            value.shape, value.dtype = tuple(attribute.t.dims), dtype_name(attribute.t.data_type)
            value.const = op.attributes.get("value")
        elif attribute.name == "sparse_value":
            tensor = attribute.sparse_tensor
            value.shape, value.dtype = tuple(tensor.dims), dtype_name(tensor.values.data_type)
        else:
            dtype = _CONSTANT_DTYPES.get(attribute.name, "string")
            data = np.array(op.attributes[attribute.name], object if dtype == "string" else dtype)
            self.set_const(value, data)

    # -- inference --------------------------------------------------------------------------------------------------

    def opsets(self, op: Op) -> Mapping[str, int]:
        return self.built.op_opsets.get(op, self.built.opsets)

    def infer(self, op: Op) -> dict[int, onnx.TypeProto]:
        """What onnx's shape function says of each output, by output position."""
        opsets = self.opsets(op)
        schema = _schema(op.op_type, opsets.get(op.domain, 1), op.domain)
        if schema is None:
            return {}
        node = self.built.protos[op]
        types: dict[str, onnx.TypeProto] = {}
        data: dict[str, onnx.TensorProto] = {}
        for name, value in zip(node.input, op.inputs):
            if value is None:
                if name:
                    types[name] = onnx.TypeProto()
                continue
            types[name] = self.type_of(value)
            if value.const is not None and value.const.size <= MAX_DATA_ELEMENTS and value.const.dtype != object:
                data[name] = self.tensor_of(value)
        imports = self.import_list(opsets)
        try:
            found = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=imports, ir_version=self.built.ir_version
            )
            if (not found or any(type_shape(t) is None for t in found.values())) and _has_body(schema):
                found = _infer_by_body(node, types, data, imports)
        except Exception:  # the shape functions raise on every inconsistency: the outputs are then not known
            return {}
        return {position: found[name] for position, name in enumerate(node.output) if name in found}

    def import_list(self, opsets: Mapping[str, int]) -> list[onnx.OperatorSetIdProto]:
        found = self.imports.get(id(opsets))
        if found is None:
            found = self.imports[id(opsets)] = [onnx.helper.make_opsetid(d, v) for d, v in opsets.items()]
        return found

    def type_of(self, value: Value) -> onnx.TypeProto:
        found = self.types.get(value)
        if found is None:
            found = onnx.TypeProto()
            number = dtype_number(value.dtype)
            if number is not None:
                found.tensor_type.elem_type = number
                if value.shape is not None:
                    set_type_shape(found, value.shape)
            self.types[value] = found
        return found

    def tensor_of(self, value: Value) -> onnx.TensorProto:
        found = self.tensors.get(value)
        if found is None:
            found = self.tensors[value] = numpy_helper.from_array(np.asarray(value.const), value.name)
        return found

    def settle(self, value: Value, inferred: onnx.TypeProto | None) -> None:
        """Gives ``value`` what is inferred, and where that has gaps what the file declares."""
        declared = self.built.declared.get(value)
        kind = inferred if inferred is not None and inferred.WhichOneof("value") else declared
        if kind is None:
            return
        shape, dtype = type_shape(kind), type_dtype(kind)
        if declared is not None and declared is not kind:
            merged = merge_shapes(shape, type_shape(declared))
            dtype = dtype or type_dtype(declared)
        else:
            merged = shape
        if merged != shape or dtype != type_dtype(kind):
            copy = onnx.TypeProto()
            copy.CopyFrom(kind)
            kind = copy
            if merged is not None:
                set_type_shape(kind, merged)
        self.types[value] = kind
        value.shape, value.dtype = merged, dtype

    # -- control flow -----------------------------------------------------------------------------------------------

    def control_flow(self, op: Op) -> None:
        found = resolve_bodies(op, self.walk_body, self.forget)
        for value, (shape, dtype) in zip(op.outputs, found):
            self.settle(value, None)
            value.shape = merge_shapes(shape, value.shape)
            value.dtype = value.dtype or dtype
            self.types.pop(value, None)

    def walk_body(self, body: Graph) -> None:
        for value in body.inputs:
            self.types.pop(value, None)
        self.walk(body)

    def forget(self, body: Graph) -> None:
        """Takes back what was found out about the values that a body computes."""
        for op in body.ops:
            for value in op.outputs:
                value.shape, value.dtype, value.const, value.constant = None, None, None, False
                self.types.pop(value, None)
                self.tensors.pop(value, None)
                self.vectors.pop(value, None)
            for inner in op.subgraphs.values():
                self.forget(inner)


def _has_body(schema: onnx.defs.OpSchema) -> bool:
    return bool(getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False))


def _infer_by_body(
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    imports: list[onnx.OperatorSetIdProto],
) -> dict[str, onnx.TypeProto]:
    """Types of an op that onnx defines by a function body and no shape function: only a whole model expands it."""
    graph = onnx.GraphProto(name="one", node=[node], initializer=data.values())
    for name, kind in types.items():
        if name not in data and kind.WhichOneof("value"):
            graph.input.add(name=name, type=kind)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, graph=graph, opset_import=imports)
    return {v.name: v.type for v in shape_inference.infer_shapes(model, data_prop=True).graph.output}


def _array_dtype(data: np.ndarray) -> str:
    return "string" if data.dtype.kind in "OSU" else data.dtype.name
