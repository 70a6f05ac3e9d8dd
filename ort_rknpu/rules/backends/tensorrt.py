"""TensorRT's ElementWise layer, on the GPU and on the deep learning accelerator (DLA)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from custom_ops.broadcast import Shape, equal_rank, show
from ort_rknpu.graph import Op
from ort_rknpu.rules.backends.findings import (
    BackendPlacement,
    Findings,
    Inputs,
    check_same_type,
    is_own,
    judge,
    known_ranks,
    known_types,
    not_covered,
    onnx_operations,
)
from ort_rknpu.targets.backends.registry import BackendTarget, load, rows

_TEXTS = {
    "rank": "rank differs: both inputs must have the same rank, TensorRT adds no leading ones",
    "sizes": "sizes differ: each dimension must be equal or 1 in one of the inputs",
}
_SPATIAL_RANK = 4


@dataclass(frozen=True)
class Types:
    """Element types of some operations in some versions; ``output`` is ``same`` or a type."""

    versions: tuple[str, ...]
    operations: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str
    source: str


@dataclass(frozen=True)
class HeaderTypes:
    """Types the C++ header takes where the operator reference does not."""

    operations: tuple[str, ...]
    inputs: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Ranks:
    """Smallest and largest rank by version."""

    versions: tuple[str, ...]
    minimum: int
    maximum: int
    source: str


@dataclass(frozen=True)
class DlaOperation:
    """Operations of the DLA: how many constant inputs (least, most), and which broadcast."""

    operations: tuple[str, ...]
    constants: tuple[int, int]
    broadcast: str
    source: str


@dataclass(frozen=True)
class DlaTypes:
    """Element types of the DLA."""

    types: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class DlaSize:
    """One upper limit on sizes."""

    limit: str
    maximum: int
    source: str


@dataclass(frozen=True)
class DlaRequirement:
    """One requirement that has no number."""

    limit: str
    allowed: str
    source: str


@dataclass(frozen=True)
class Rule:
    """Where the broadcast rule stands."""

    rule: str
    source: str


@cache
def _types(version: str) -> dict[str, Types]:
    """Operation -> its type row in one version."""
    return {
        operation: row
        for row in rows("tensorrt", "types", Types)
        if version in row.versions
        for operation in row.operations
    }


@cache
def _dla() -> dict[str, DlaOperation]:
    return {op: row for row in rows("tensorrt", "dla_operations", DlaOperation) for op in row.operations}


def place(op: Op, target: BackendTarget) -> BackendPlacement:
    """The verdict on an ONNX node, or on an ``ElementWise`` node of the ``tensorrt`` domain."""
    own = is_own(op, target) and op.op_type == "ElementWise"
    operations = (str(op.attr("operation")),) if own else onnx_operations(op, target)
    types = _types(target.variant)

    def check(findings: Findings, inputs: Inputs) -> None:
        if own and operations[0] not in types:
            source = load("tensorrt")["scope"]["source"]
            findings.refuse("operation", "the operation must be known", operations[0], ", ".join(types), source)
            return
        for operation in operations:
            _check_types(findings, operation, types[operation], inputs)
        _check_shapes(findings, inputs, target.variant)
        if target.profile == "tensorrt-dla":
            _check_dla(findings, operations, inputs)

    return judge(op, target, check) if operations else not_covered(op, target)


def _check_types(findings: Findings, operation: str, row: Types, inputs: Inputs) -> None:
    types = known_types(findings, inputs, row.source)
    if types is None:
        return
    for dtype in dict.fromkeys(types):
        if dtype in row.inputs:
            continue
        looser = [
            header.source
            for header in rows("tensorrt", "header_types", HeaderTypes)
            if operation in header.operations and dtype in header.inputs
        ]
        hint = f"{looser[0]} would take it" if looser else f"Cast the inputs to {row.inputs[-1]}"
        text = f"type not taken by {operation} in this version"
        findings.refuse("type", text, dtype, ", ".join(row.inputs), row.source, hint)
    check_same_type(findings, types, "types differ: both inputs must have the same type")


def _check_shapes(findings: Findings, inputs: Inputs, version: str) -> None:
    source = rows("tensorrt", "broadcast", Rule)[0].source
    shapes = known_ranks(findings, inputs, source)
    if shapes is None:
        return
    a, b = shapes
    limit = next(row for row in rows("tensorrt", "ranks", Ranks) if version in row.versions)
    for shape in shapes:
        if not limit.minimum <= len(shape) <= limit.maximum:
            allowed = f"{limit.minimum}..{limit.maximum}"
            text = "too many dimensions for this version"
            findings.refuse("maximum_rank", text, str(len(shape)), allowed, limit.source, "Reshape to fewer dimensions")
    hint = ""
    if len(a) != len(b):
        small = min(shapes, key=len)
        hint = f"Reshape {show(small)} to {show((1,) * abs(len(a) - len(b)) + small)}"
    findings.mismatches(equal_rank(a, b), _TEXTS, source, hint)


def _check_dla(findings: Findings, operations: tuple[str, ...], inputs: Inputs) -> None:
    allowed = rows("tensorrt", "dla_types", DlaTypes)[0]
    requirements = {row.limit: row for row in rows("tensorrt", "dla_requirements", DlaRequirement)}
    for dtype in dict.fromkeys(value.dtype for value in inputs):
        if dtype is not None and dtype not in allowed.types:
            text = "type not taken by the DLA"
            findings.refuse("dla_type", text, dtype, ", ".join(allowed.types), allowed.source, "Cast to float16")
    if inputs[0] is not inputs[1] and any(value.dtype == "int8" for value in inputs):
        row = requirements["dynamic_range"]
        text = "both int8 inputs must have the same dynamic range, which the model does not say"
        findings.leave_open(row.limit, text, "ranges unknown", row.allowed, row.source)
    for operation in operations:
        _check_dla_operation(findings, operation, inputs)
    for value in inputs:
        if value.shape is not None:
            _check_dla_shape(findings, value.shape, requirements)


def _check_dla_operation(findings: Findings, operation: str, inputs: Inputs) -> None:
    row = _dla().get(operation)
    if row is None:
        source = rows("tensorrt", "dla_operations", DlaOperation)[0].source
        findings.refuse("dla_operation", "operation not taken by the DLA", operation, ", ".join(_dla()), source)
        return
    least, most = row.constants
    count = sum(value.constant for value in inputs)
    if not least <= count <= most:
        wanted = f"exactly {least}" if least == most else f"at most {most}"
        text = f"{operation} on the DLA wants {wanted} constant input"
        findings.refuse("constants", text, str(count), wanted, row.source)
    a, b = (value.static_shape for value in inputs)
    if row.broadcast == "nchw" and a is not None and b is not None and not (_fits_nchw(a, b) or _fits_nchw(b, a)):
        text = "a comparison on the DLA broadcasts only along whole trailing dimensions"
        findings.refuse("dla_broadcast", text, f"{show(a)} and {show(b)}", "NCHW with NCHW, NC11 or N111", row.source)


def _fits_nchw(full: Shape, other: Shape) -> bool:
    """Whether ``other`` equals ``full`` or is its NC11 or N111 form."""
    if full == other:
        return True
    if len(full) != _SPATIAL_RANK or len(other) != _SPATIAL_RANK:
        return False
    n, c = full[:2]
    return other in ((n, c, 1, 1), (n, 1, 1, 1))


def _check_dla_shape(findings: Findings, shape: Shape, requirements: dict[str, DlaRequirement]) -> None:
    static = [dim for dim in shape if isinstance(dim, int)]
    if len(static) != len(shape):
        dynamic = requirements["static"]
        report = findings.leave_open if None in shape else findings.refuse
        report("static", "the DLA takes no dynamic dimension", show(shape), dynamic.allowed, dynamic.source)
        return
    if len(shape) < _SPATIAL_RANK:
        spatial = requirements["spatial"]
        text = "layers of the DLA are described for two spatial dimensions only"
        findings.leave_open("spatial", text, show(shape), spatial.allowed, spatial.source, "Reshape to N, C, H, W")
    batch, largest = prod(static[:-3]), max(static[-3:], default=0)
    for row in rows("tensorrt", "dla_sizes", DlaSize):
        actual = batch if row.limit == "batch" else largest
        if actual > row.maximum:
            text = f"{row.limit} too large for the DLA"
            findings.refuse(row.limit, text, f"{actual} in {show(shape)}", f"up to {row.maximum}", row.source)
