"""What the predicates of a back end find on one node, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from custom_ops.broadcast import Broadcast, Shape
from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.clause import Clause
from ort_rknpu.targets.backends.registry import BackendTarget, load, rows

Inputs = tuple[Value, Value]
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


@dataclass(frozen=True)
class Node:
    """What one ONNX operator becomes on a back end: all of these operations accept it, or it is refused."""

    op_type: str
    operations: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class SameType:
    """Both inputs have one type, unless both are among ``together``."""

    together: tuple[str, ...]
    source: str


@cache
def _nodes(backend: str) -> dict[str, Node]:
    return {node.op_type: node for node in rows(backend, "nodes", Node)}


def is_own(op: Op, target: BackendTarget) -> bool:
    """Whether a node is of the back end's own domain."""
    return bool(op.domain == load(target.backend)["domain"])


def onnx_operations(op: Op, target: BackendTarget) -> tuple[str, ...]:
    """The operations an ONNX node becomes; none where there is no rule, or it broadcasts as before operator set 7."""
    node = _nodes(target.backend).get(op.op_type)
    if node is None or op.domain not in ("", "ai.onnx") or "broadcast" in op.attributes:
        return ()
    return node.operations


def not_covered(op: Op, target: BackendTarget, actual: str = "") -> BackendPlacement:
    """No claim: the back end's file has no rule for this form of the node."""
    scope = load(target.backend)["scope"]
    findings = Findings(target, op.op_type)
    name = f"{op.domain}::{op.op_type}" if op.domain else op.op_type
    findings.leave_open("scope", scope["text"], actual or name, "a described operator", scope["source"])
    return findings.answer()


def judge(op: Op, target: BackendTarget, check: Callable[[Findings, Inputs], None]) -> BackendPlacement:
    """What ``check`` finds on a node with a rule; one without exactly two inputs is not covered."""
    a, b = (op.input(0), op.input(1)) if len(op.inputs) == 2 else (None, None)
    if a is None or b is None:
        return not_covered(op, target, f"{op.op_type} with {sum(v is not None for v in op.inputs)} inputs")
    findings = Findings(target, op.op_type)
    check(findings, (a, b))
    return findings.answer()


def check_same_type(findings: Findings, types: tuple[str, str], text: str) -> None:
    """Refuses two types that may not meet."""
    rule = rows(findings.target.backend, "same_type", SameType)[0]
    if types[0] == types[1] or set(types) <= set(rule.together):
        return
    allowed = "equal types" + (f", or {' with '.join(rule.together)}" if rule.together else "")
    findings.refuse("same_type", text, f"{types[0]} and {types[1]}", allowed, rule.source, "Cast one input")


def known_types(findings: Findings, values: Inputs, source: str) -> tuple[str, str] | None:
    """Both element types; leaves the node open and returns None where one is unknown."""
    a, b = (value.dtype for value in values)
    if a is not None and b is not None:
        return a, b
    findings.leave_open("type", "both element types must be known", f"{a or '?'} and {b or '?'}", "known types", source)
    return None


def known_ranks(findings: Findings, values: Inputs, source: str) -> tuple[Shape, Shape] | None:
    """Both shapes, dimensions possibly unknown; leaves the node open and returns None where a rank is unknown."""
    a, b = (value.shape for value in values)
    if a is not None and b is not None:
        return a, b
    numbers = " and ".join(str(index) for index, value in enumerate(values) if value.shape is None)
    findings.leave_open("rank", "both ranks must be known", f"rank of input {numbers} unknown", "known ranks", source)
    return None
