"""Predictions of the compiler in the form that recordings are scored in."""

from __future__ import annotations

from collections.abc import Sequence

from ort_rknpu.compiler.compilation import Compilation, CompiledOp
from ort_rknpu.compiler.compile import compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import Target
from ort_rknpu.vendor.score import PredictedNode, Prediction


def predict(model: Model, targets: Sequence[Target]) -> list[Prediction]:
    """One prediction per target, in order."""
    return [to_prediction(model, compilation) for compilation in compile_model(model, targets)]


def to_prediction(model: Model, compilation: Compilation) -> Prediction:
    """Node verdicts, rows by the device the compiler prints, and the build verdict of one compilation.

    An overflowing row is printed for the NPU; any other unsupported one for the CPU.
    """
    rows: list[list[CompiledOp]] = [[] for _ in model.nodes]
    for row in compilation.ops:
        for index in row.origins:
            rows[index].append(row)
    return Prediction(
        nodes={node.name: _node(node.op_type, found) for node, found in zip(model.nodes, rows)},
        rows=tuple((row.op, _printed(row)) for row in compilation.ops),
        build_ok=compilation.build.ok,
        build_reasons=tuple(f"{clause.id}: {clause.actual}" for clause in compilation.build.reasons),
    )


def _overflows(row: CompiledOp) -> bool:
    return bool(row.clauses) and all(clause.id.endswith(".overflow") for clause in row.clauses)


def _printed(row: CompiledOp) -> str:
    if row.device == "unsupported":
        return "npu" if _overflows(row) else "cpu"
    return row.device


def _node(op_type: str, rows: Sequence[CompiledOp]) -> PredictedNode:
    devices = {row.device for row in rows}
    if not devices:
        verdict = "folded"
    elif len(devices) == 1:
        verdict = devices.pop()
    elif "unknown" in devices:
        verdict = "unknown"
    else:
        verdict = "split"
    return PredictedNode(
        op_type=op_type,
        verdict=verdict,
        compiled_as=tuple(f"{row.op}@{row.device}" for row in rows),
        clauses=tuple(clause.id for row in rows for clause in row.clauses),
        overflow=bool(rows) and all(row.device == "npu" or _overflows(row) for row in rows),
    )
