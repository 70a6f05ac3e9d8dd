"""ONNX schemas of every operator, so that ``onnx.shape_inference`` sees through them in a toolkit dump."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import onnx
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceContext, InferenceError

from custom_ops.backend_contracts import OPERATORS
from custom_ops.checks import resolve_attributes, writes_bool
from custom_ops.contracts import Attribute, Contract, Input
from custom_ops.errors import OpError
from custom_ops.shapes import Dim, Shape, infer_shapes

ELEMENT_TYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.DOUBLE: "float64",
    **{
        getattr(onnx.TensorProto, f"{u}INT{bits}"): f"{u.lower()}int{bits}"
        for u in ("", "U")
        for bits in (8, 16, 32, 64)
    },
    onnx.TensorProto.BOOL: "bool",
}
"""What ``T`` of a contract may be, by its number in ONNX."""

_SPELLINGS = {"float32": "float", "float64": "double"}
_FIXED = {"bool": "tensor(bool)", "int32": "tensor(int32)"}
_lock = threading.Lock()


def shape_of(value_type: onnx.TypeProto | None) -> Shape | None:
    """The shape of a tensor type, None where it carries none."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in value_type.tensor_type.shape.dim:
        dims.append(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None)
    return tuple(dims)


def tensor_type(element_type: int, shape: Shape | None) -> onnx.TypeProto:
    """The ONNX type of a tensor."""
    return onnx.helper.make_tensor_type_proto(element_type, shape)


def _inference(contract: Contract) -> Callable[[InferenceContext], None]:
    def infer(context: InferenceContext) -> None:
        given: dict[str, Any] = {}
        for name in [a.name for a in contract.attributes]:
            value = context.get_attribute(name)
            if value is not None:
                given[name] = onnx.helper.get_attribute_value(value)
        types = [context.get_input_type(i) if context.has_input(i) else None for i in range(context.get_num_inputs())]
        try:
            attributes = resolve_attributes(contract, given)
            shapes = infer_shapes(contract.name, [shape_of(t) for t in types], attributes)
        except OpError as error:
            raise InferenceError(f"{contract.name}: {error}") from error
        element_type = types[0].tensor_type.elem_type if types and types[0] is not None else 0
        booleans = writes_bool(contract, attributes)
        for index, shape, boolean in zip(range(context.get_num_outputs()), shapes, booleans):
            if context.has_output(index):
                context.set_output_type(index, tensor_type(onnx.TensorProto.BOOL if boolean else element_type, shape))

    return infer


def _attribute(attribute: Attribute) -> OpSchema.Attribute:
    if attribute.default is None:
        return OpSchema.Attribute(attribute.name, getattr(OpSchema.AttrType, attribute.type.upper()), required=True)
    default = list(attribute.default) if isinstance(attribute.default, tuple) else attribute.default
    return OpSchema.Attribute(attribute.name, onnx.helper.make_attribute(attribute.name, default))


def build_schema(contract: Contract, domain: str = "") -> OpSchema:
    """The contract as an ONNX schema, with shape inference."""

    def port(p: Any) -> OpSchema.FormalParameter:
        kind = _FIXED.get(p.type, "T" if p.type == "T" or isinstance(p, Input) else "T2")
        option = OpSchema.FormalParameterOption.Optional if p.optional else OpSchema.FormalParameterOption.Single
        return OpSchema.FormalParameter(p.name, kind, p.shape, param_option=option)

    kinds = [f"tensor({_SPELLINGS.get(name, name)})" for name in contract.types]
    either = [("T2", kinds, "T or bool.")] if any(o.type == "T or bool" for o in contract.outputs) else []
    schema = OpSchema(
        contract.name,
        domain,
        1,
        contract.formula,
        inputs=[port(p) for p in contract.inputs],
        outputs=[port(p) for p in contract.outputs],
        type_constraints=[("T", kinds, "Type of the inputs."), *either],
        attributes=[_attribute(a) for a in contract.attributes],
    )
    schema.set_type_and_shape_inference_function(_inference(contract))
    return schema


def register() -> None:
    """Registers every operator's schema with the onnx package, in the domains where models have them.

    Idempotent, and unknown to ONNX Runtime, which keeps schemas of its own.
    """
    # When first imported, and only then, onnx.reference refuses schemas of one name in several domains.
    import onnx.reference

    with _lock:
        for contract in OPERATORS.values():
            for domain in contract.domains:
                if not onnx.defs.has(contract.name, domain):
                    onnx.defs.register_schema(build_schema(contract, domain))
