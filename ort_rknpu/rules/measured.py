"""Where the vendor's compiler was seen to put a compiled op: measured limits per toolkit version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules import relayout
from ort_rknpu.rules.clause import Clause, Placement
from ort_rknpu.rules.documented import cpu_clauses
from ort_rknpu.rules.judge import Form, Violation, judge
from ort_rknpu.targets.measurements import measured_rules
from ort_rknpu.targets.socs import Target


def place(op: Op, target: Target) -> Placement:
    """The device of a compiled op and every clause that keeps it off the NPU.

    A row of a kind that was never seen is on the CPU, as every op is that the compiler has no rule for. A row on the
    CPU is ``unsupported`` where the operator list has no CPU kernel for it on that SoC; so is one that the compiler
    prints for the NPU although its values do not fit the registers (:attr:`Placement.overflows`). ``unknown``: a shape
    or value that a limit needs is not known.
    """
    placement = _device(op, target)
    if placement.device == "npu":
        return _overflow(op, target) or placement
    if placement.device != "cpu":
        return placement
    missing: list[Clause] | None = None
    for kernel in measured_rules(target.toolkit).cpu_kernels.get(op.op_type, (op.op_type,)):
        violated, _ = cpu_clauses(op, target, kernel)
        if not violated:
            return placement
        missing = missing or violated
    return Placement("unsupported", (*placement.clauses, *(missing or ())))


def _device(op: Op, target: Target) -> Placement:
    """Where the compiler prints the row: ``npu``, ``cpu`` or ``unknown``."""
    rule = measured_rules(target.toolkit).ops.get(op.op_type)
    if rule is None or rule.device == "cpu":
        source = f"measured {target.toolkit}: no row of this op on the NPU" if rule is None else rule.source
        return Placement("cpu", (_never(op, target, source),))
    clauses: list[Clause] = []
    unknown: list[Clause] = []
    text = f"{op.op_type} stays on the NPU with {{allowed}}."
    for limit in rule.limits:
        for clause, known in judge(op, target, limit, _FORMS, text):
            (clauses if known else unknown).append(clause)
    if clauses:
        return Placement("cpu", tuple(clauses))
    return Placement("unknown", tuple(unknown)) if unknown else Placement("npu")


def _overflow(op: Op, target: Target) -> Placement | None:
    text = f"{op.op_type} fits the NPU's registers with {{allowed}}; the compiler goes on with more."
    clauses = []
    for limit in measured_rules(target.toolkit).overflow.get(op.op_type, ()):
        clauses += [clause for clause, known in judge(op, target, limit, {}, text) if known]
    return Placement("unsupported", tuple(clauses)) if clauses else None


def _never(op: Op, target: Target, source: str) -> Clause:
    return Clause(
        id=f"{target.soc.name}.{op.op_type}.op",
        text=f"The compiler puts {op.op_type} on the CPU.",
        actual=op.op_type,
        allowed="an op that the NPU runs",
        source=source,
    )


def _with_neighbours(form: relayout.LayoutForm) -> Form:
    def judged(op: Op, target: Target, params: Mapping[str, Any]) -> Iterator[Violation]:
        return form(op, target, params, lambda other: _on_cpu(other, target))

    return judged


def _on_cpu(op: Op, target: Target) -> bool:
    """Whether a neighbour of a Reshape is on the CPU; another Reshape counts as on the NPU."""
    rule = measured_rules(target.toolkit).ops.get(op.op_type)
    if rule is not None and any(limit.form for limit in rule.limits):
        return False
    return _device(op, target).device == "cpu"


_FORMS: dict[str, Form] = {name: _with_neighbours(form) for name, form in relayout.FORMS.items()}
