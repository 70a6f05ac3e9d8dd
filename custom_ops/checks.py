"""Argument checks that follow from the contracts: attributes, and which inputs and outputs a node lists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from custom_ops.backend_contracts import OPERATORS
from custom_ops.contracts import CONTRACTS, WITHOUT_SEMANTICS, Attribute, AttributeValue, Contract, Input, Output
from custom_ops.elementwise import COMPARISONS
from custom_ops.errors import OpError, UnknownOpError

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "string": (str,)}


def find_contract(op_type: str) -> Contract:
    """The contract of ``op_type``.

    Raises:
        UnknownOpError: no such operator, or one without public semantics.
    """
    contract = OPERATORS.get(op_type)
    if contract is not None:
        return contract
    if op_type in WITHOUT_SEMANTICS:
        raise UnknownOpError(f"{op_type} has no public semantics ({WITHOUT_SEMANTICS[op_type]}) and cannot be run")
    raise UnknownOpError(f"unknown operator {op_type}; known: {', '.join(CONTRACTS)}")


def _typed(attribute: Attribute, value: Any) -> AttributeValue:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if attribute.type == "ints":
        if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, int) for v in value):
            return tuple(value)
        raise OpError(f"attribute {attribute.name} must be a list of integers, not {value!r}")
    expected = _PYTHON_TYPES[attribute.type]
    if type(value) not in expected:
        raise OpError(f"attribute {attribute.name} must be of type {attribute.type}, not {value!r}")
    if attribute.type == "float" and not math.isfinite(value):
        raise OpError(f"attribute {attribute.name} must be finite, not {value}")
    return float(value) if attribute.type == "float" else value


def resolve_attributes(contract: Contract, given: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Every attribute of the contract with the node's value or the default.

    Names in ``contract.ignored`` are left out as the toolkit leaves them out.

    Raises:
        OpError: a required attribute is missing, one is not in the contract, or a type or value is not allowed.
    """
    names = [attribute.name for attribute in contract.attributes]
    for name in given:
        if name not in names and name not in contract.ignored:
            raise OpError(f"unknown attribute {name}; valid: {', '.join(names) or 'none'}")
    resolved: dict[str, AttributeValue] = {}
    for attribute in contract.attributes:
        if attribute.name not in given:
            if attribute.default is None:
                raise OpError(f"required attribute {attribute.name} is missing")
            resolved[attribute.name] = attribute.default
            continue
        value = _typed(attribute, given[attribute.name])
        if attribute.allowed and value not in attribute.allowed:
            allowed = ", ".join(map(repr, attribute.allowed))
            raise OpError(f"attribute {attribute.name} is {value!r}; allowed: {allowed}")
        resolved[attribute.name] = value
    return resolved


def writes_bool(contract: Contract, attributes: Mapping[str, Any]) -> tuple[bool, ...]:
    """Per output, whether it is bool whatever ``T`` is."""
    return contract.booleans(attributes.get("operation") in COMPARISONS)


def check_ports(contract: Contract, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Checks which inputs and outputs are listed; ``""`` stands for an omitted one.

    Raises:
        OpError: a required one is missing, or there are more than the contract has.
    """
    listed: tuple[tuple[str, Sequence[Input | Output], Sequence[str]], ...] = (
        ("input", contract.inputs, inputs),
        ("output", contract.outputs, outputs),
    )
    for kind, ports, given in listed:
        if len(given) > len(ports):
            raise OpError(f"{len(given)} {kind}s given; at most {len(ports)}: {', '.join(p.name for p in ports)}")
        for index, port in enumerate(ports):
            if not port.optional and (index >= len(given) or not given[index]):
                raise OpError(f"required {kind} {port.name} is missing")
    if contract.name == "exNorm" and len(inputs) == 3 and inputs[2] and not inputs[1]:
        raise OpError("input B is given without W")
