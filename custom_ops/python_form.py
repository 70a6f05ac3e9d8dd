"""The form in which ex nodes reach the Python ops: one domain, one fixed signature per operator and float type.

A Python op has no optional inputs, no lists and no default attributes. So every input of the contract is given (an
empty tensor stands for an omitted one) and one string attribute carries the rest. Each output comes with its shape as
a tensor: where errors are to be raised, a Reshape to that shape follows, and a failed op returns the number of its
error in place of the shape, which makes that Reshape, and with it ``run()``, fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from custom_ops.checks import writes_bool
from custom_ops.contracts import AttributeValue, Contract
from custom_ops.lowering import Builder
from custom_ops.schemas import ELEMENT_TYPES

DOMAIN = "rknpu.python"
CALL = "call"
"""Name of the one attribute."""
FIRST_ERROR = 1 << 40
"""Errors are numbered from here: no size of a dimension that could ever be allocated."""

_BESIDE_T = {"bool": np.bool_, "int32": np.int32}
_NUMBER = re.compile(r"requested shape:\{(\d{13,})\}")


@dataclass(frozen=True)
class PythonCall:
    """What the string attribute of a node says."""

    op_type: str
    node: str
    attributes: Mapping[str, Any]
    raises: bool

    def encode(self) -> str:
        """The attribute's value."""
        return json.dumps([self.op_type, self.node, self.attributes, self.raises], separators=(",", ":"))


def decode(value: str) -> PythonCall:
    """The inverse of :meth:`PythonCall.encode`."""
    op_type, node, attributes, raises = json.loads(value)
    fixed = {name: tuple(v) if isinstance(v, list) else v for name, v in attributes.items()}
    return PythonCall(op_type, node, fixed, raises)


def op_type(contract: Contract, element: str, booleans: tuple[bool, ...]) -> str:
    """The name under which the operator is registered for one of its ``computed_types`` and for what it writes."""
    kind = "" if element == "float32" else f"_{element}"
    return f"{contract.name}{kind}{'_to_bool' if any(booleans) else ''}"


def error_number(message: str) -> int | None:
    """The number of the error that ONNX Runtime's message tells of, None where it is about something else."""
    found = _NUMBER.search(message)
    number = int(found.group(1)) if found else 0
    return number if number >= FIRST_ERROR else None


def emit(
    builder: Builder, contract: Contract, attributes: Mapping[str, AttributeValue], inputs: Sequence[str], raises: bool
) -> list[str]:
    """Writes the Python op that computes one ex node; returns the names of its outputs."""
    ports: list[str] = []
    for index, port in enumerate(contract.inputs):
        given = inputs[index] if index < len(inputs) else ""
        if not given:
            kind = _BESIDE_T.get(port.type) or (np.float32 if builder.element_type == TensorProto.FLOAT else np.float64)
            given = builder.tensor(np.empty(0, kind), f"no_{port.name}")
        ports.append(given)
    count = len(contract.outputs)
    call = PythonCall(contract.name, builder.prefix, dict(attributes), raises).encode()
    name = op_type(contract, ELEMENT_TYPES[builder.element_type], writes_bool(contract, attributes))
    results = builder.call(name, *ports, domain=DOMAIN, outputs=2 * count, call=call)
    values, shapes = results[:count], results[count:]
    if not raises:
        return list(values)
    return [builder.call("Reshape", value, shape, allowzero=1) for value, shape in zip(values, shapes)]
