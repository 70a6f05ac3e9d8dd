"""Contracts of other back ends' element-wise operators, each in its back end's domain; see also the ex* operators'."""

from __future__ import annotations

from custom_ops.contracts import CONTRACTS, Attribute, Contract, Input, Output
from custom_ops.elementwise import OPERATION_TYPES

_NUMBERS = ("int8", "int32", "int64", "float16", "float32", "bfloat16")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_BROADCAST = (
    Attribute("auto_broadcast", "string", "numpy", ("none", "explicit", "numpy", "pdpd")),
    Attribute("axis", "int", -1),
)
_OPENVINO_TYPES = (*_INTEGERS, "bool", "float16", "bfloat16", "float32", "float64")
_A_AND_B = (Input("A", "any"), Input("B", "broadcasts as auto_broadcast says"))

_TABLE: tuple[Contract, ...] = (
    Contract(
        "ElementWise",
        (Input("input1", "any"), Input("input2", "same rank; per dimension equal, or one of them 1")),
        (Output("output", "per dimension the length that is not 1", "T or bool"),),
        (Attribute("operation", "string", None, tuple(OPERATION_TYPES)),),
        "output = input1 operation input2; EQUAL, GREATER and LESS give bool; DIV of integers rounds to zero",
        source="TensorRT 10.7.0 operator reference, ElementWise",
        domain="tensorrt",
        types=(*_NUMBERS, "bool"),
    ),
    Contract(
        "ElementWiseMultiply",
        (Input("ATensor", "any"), Input("BTensor", "as ATensor")),
        (Output("OutputTensor", "as ATensor"),),
        (),
        "OutputTensor = ATensor * BTensor",
        source="DirectML reference, DML_ELEMENT_WISE_MULTIPLY",
        domain="directml",
        types=(*_INTEGERS, "float16", "float32"),
    ),
    Contract(
        "Less",
        _A_AND_B,
        (Output("output", "as broadcast", "bool"),),
        _BROADCAST,
        "output = A < B",
        source="OpenVINO operation set 1, Less-1",
        domain="openvino",
        types=_OPENVINO_TYPES,
    ),
    Contract(
        "Greater",
        _A_AND_B,
        (Output("output", "as broadcast", "bool"),),
        _BROADCAST,
        "output = A > B",
        source="OpenVINO operation set 1, Greater-1",
        domain="openvino",
        types=_OPENVINO_TYPES,
    ),
)

BACKEND_CONTRACTS: dict[str, Contract] = {contract.name: contract for contract in _TABLE}
"""Every operator of another back end, by op_type."""

OPERATORS: dict[str, Contract] = {**CONTRACTS, **BACKEND_CONTRACTS}
"""Every operator of this package, by op_type."""
