"""What a named predicate yields, and the context it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values
from ort_rknpu.targets.rules import GroupRules, Limit, OpRule
from ort_rknpu.targets.socs import Target


@dataclass(frozen=True)
class Finding:
    """One violated or undecidable condition of a named predicate.

    Attributes:
        actual, allowed, hint: as in a clause.
        unknown: True where a shape or value that the condition needs is not known.
        suffix: appended to the limit's id where a predicate has several conditions.
        text: what is required, or "" for the default sentence.
    """

    actual: str
    allowed: str
    hint: str = ""
    unknown: bool = False
    suffix: str = ""
    text: str = ""


@dataclass(frozen=True)
class Case:
    """One op judged by one entry of one target."""

    op: Op
    target: Target
    rule: OpRule
    rules: GroupRules
    values: Values


Form = Callable[[Case, Limit], Iterator[Finding]]
"""A named predicate: yields nothing where the op passes."""
