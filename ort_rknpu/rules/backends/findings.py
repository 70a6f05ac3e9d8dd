"""What the predicates of a back end find on one node, and the verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from custom_ops.broadcast import Broadcast, Shape
from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.clause import Clause
from ort_rknpu.targets.backends.registry import BackendTarget, load

Verdict = Literal["supported", "unsupported", "not covered"]


@dataclass(frozen=True)
class BackendPlacement:
    """A back end's verdict on one node and every clause that led to it (empty for ``supported``)."""

    verdict: Verdict
    clauses: tuple[Clause, ...] = ()


@dataclass
class Findings:
    """Collects clauses for one node: ``refuse`` what is forbidden, ``leave_open`` what is not known."""

    target: BackendTarget
    label: str
    refused: list[Clause] = field(default_factory=list)
    unknown: list[Clause] = field(default_factory=list)

    def refuse(self, limit: str, text: str, actual: str, allowed: str, source: str, hint: str = "") -> None:
        """A requirement that the node violates."""
        self.refused.append(self._clause(limit, text, actual, allowed, source, hint))

    def leave_open(self, limit: str, text: str, actual: str, allowed: str, source: str, hint: str = "") -> None:
        """A requirement on which the model or the sources say too little."""
        self.unknown.append(self._clause(limit, text, actual, allowed, source, hint))

    def mismatches(self, found: Broadcast, texts: dict[str, str], source: str, hint: str = "") -> None:
        """What keeps the shapes apart; ``texts`` has the target's own words per limit."""
        for mismatch in found.mismatches:
            report = self.refuse if mismatch.certain else self.leave_open
            report(mismatch.limit, texts[mismatch.limit], mismatch.actual, mismatch.allowed, source, hint)

    def answer(self) -> BackendPlacement:
        """The verdict: anything refused is ``unsupported``, else anything unknown is ``not covered``."""
        if self.refused:
            return BackendPlacement("unsupported", tuple(dict.fromkeys(self.refused)))
        if self.unknown:
            return BackendPlacement("not covered", tuple(dict.fromkeys(self.unknown)))
        return BackendPlacement("supported")

    def _clause(self, limit: str, text: str, actual: str, allowed: str, source: str, hint: str) -> Clause:
        return Clause(f"{self.target.name}.{self.label}.{limit}", text, actual, allowed, source, hint)


def not_covered(op: Op, target: BackendTarget, actual: str = "") -> BackendPlacement:
    """No claim: the back end's file has no rule for this form of the node."""
    scope = load(target.backend)["scope"]
    findings = Findings(target, op.op_type)
    name = f"{op.domain}::{op.op_type}" if op.domain else op.op_type
    findings.leave_open("scope", scope["text"], actual or name, "a described operator", scope["source"])
    return findings.answer()


def binary_inputs(op: Op) -> tuple[Value, Value] | None:
    """The two inputs of a binary node, None where it has another number of them."""
    present = [value for value in op.inputs if value is not None]
    return (present[0], present[1]) if len(op.inputs) == len(present) == 2 else None


def is_onnx(op: Op) -> bool:
    """Whether a node is of the standard domain, in a form with today's broadcasting (operator set 7 or later)."""
    return op.domain in ("", "ai.onnx") and "broadcast" not in op.attributes


def known_types(findings: Findings, values: tuple[Value, Value], source: str) -> tuple[str, str] | None:
    """Both element types; leaves the node open and returns None where one is unknown."""
    a, b = (value.dtype for value in values)
    if a is not None and b is not None:
        return a, b
    findings.leave_open("type", "both element types must be known", f"{a or '?'} and {b or '?'}", "known types", source)
    return None


def known_ranks(findings: Findings, values: tuple[Value, Value], source: str) -> tuple[Shape, Shape] | None:
    """Both shapes, dimensions possibly unknown; leaves the node open and returns None where a rank is unknown."""
    a, b = (value.shape for value in values)
    if a is not None and b is not None:
        return a, b
    numbers = " and ".join(str(index) for index, value in enumerate(values) if value.shape is None)
    findings.leave_open("rank", "both ranks must be known", f"rank of input {numbers} unknown", "known ranks", source)
    return None
