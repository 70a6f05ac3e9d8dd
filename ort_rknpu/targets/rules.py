"""What the documented rules are once loaded: limits, tensors, entries, and the rules of a SoC group and of the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ort_rknpu.targets.expressions import Expression

Status = Literal["supported", "not_supported", "converted"]


@dataclass(frozen=True)
class Limit:
    """One condition of an entry. Exactly one of interval, ``values``, ``require`` and ``form`` is set.

    Attributes:
        id: last part of the clause id; also the name of the value that an interval or ``values`` looks at.
        low, high: closed interval, None where that end is open.
        values: the accepted values.
        require: expression that holds for an accepted op.
        form, params: named predicate and its numbers.
        when: the limit applies only where this holds.
        allowed: what is accepted, as short text.
        hint: what to change, or "".
        printed: the document's own statement where the reading differs, or "".
        reading: number in docs/readings.md, or None.
    """

    id: str
    low: int | None = None
    high: int | None = None
    values: tuple[Any, ...] | None = None
    require: Expression | None = None
    form: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    when: Expression | None = None
    allowed: str = ""
    hint: str = ""
    printed: str = ""
    reading: int | None = None


@dataclass(frozen=True)
class Tensor:
    """An input or output of an entry: name, accepted dtypes, dimensions by name, quantisation granularities."""

    name: str
    dtypes: tuple[str, ...]
    shape: str = ""
    quant: tuple[str, ...] = ()
    optional: bool = False
    variadic: bool = False
    printed: tuple[str, ...] = ()
    printed_shape: str = ""


@dataclass(frozen=True)
class OpRule:
    """One entry of chapter 3.

    Attributes:
        name: our name: the ONNX op, the toolkit's ex op, or the compiler's name of a fused row.
        section: of the document.
        title: the name as printed.
        kind: ``op``, ``fused`` or ``extension``.
        status: ``supported``, ``not_supported``, or ``converted`` (the toolkit makes ``judged_as`` of it).
        onnx: ONNX ops that this entry judges.
        rows: further compiled rows that it judges.
        chains: ONNX chains behind a fused entry.
        limits_of: the entry whose tensors and limits hold here too, or "".
        activations: accepted activation dtypes.
        limits: own or inherited.
        flash_attention: dtypes and mask patterns of that mode, where the entry has it.
        not_judged: name -> fact of the document that has no effect on a verdict.
        multicore: SoC -> ``yes``, ``no`` or ``not_yet``.
        readings: numbers in docs/readings.md.
    """

    name: str
    section: str
    title: str
    kind: str = "op"
    status: Status = "supported"
    judged_as: str = ""
    onnx: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    chains: tuple[tuple[str, ...], ...] = ()
    limits_of: str = ""
    limits_section: str = ""
    activations: tuple[str, ...] = ()
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    limits: tuple[Limit, ...] = ()
    not_judged: Mapping[str, Any] = field(default_factory=dict)
    flash_attention: Mapping[str, Any] = field(default_factory=dict)
    multicore: Mapping[str, str] = field(default_factory=dict)
    readings: tuple[int, ...] = ()

    @cached_property
    def forms(self) -> tuple[Limit, ...]:
        """The limits that are named predicates."""
        return tuple(limit for limit in self.limits if limit.form)

    @cached_property
    def intervals(self) -> tuple[tuple[str, int, float], ...]:
        """(name, low, high) of the limits that are an interval and always apply."""
        found = (limit for limit in self.limits if limit.low is not None and limit.when is None)
        return tuple((limit.id, limit.low or 0, math.inf if limit.high is None else limit.high) for limit in found)

    @cached_property
    def conditions(self) -> tuple[Limit, ...]:
        """The limits that are neither."""
        plain = {name for name, _, _ in self.intervals}
        return tuple(limit for limit in self.limits if not limit.form and limit.id not in plain)

    def limit(self, limit_id: str) -> Limit:
        """The limit of that name. KeyError where there is none."""
        for limit in self.limits:
            if limit.id == limit_id:
                return limit
        raise KeyError(limit_id)


@dataclass(frozen=True)
class CpuRule:
    """One entry of chapter 4.

    ``rv`` says whether the four RV110x chips run it, ``denied`` whether the toolkit's own op table denies it.
    """

    name: str
    section: str
    title: str
    kind: str = "op"
    onnx: tuple[str, ...] = ()
    rv: bool = False
    limits: tuple[Limit, ...] = ()
    denied: bool = False
    not_judged: Mapping[str, Any] = field(default_factory=dict)
    readings: tuple[int, ...] = ()


@dataclass(frozen=True)
class GroupRules:
    """Chapter 3 for one SoC group: entries by name, and by the ONNX op or compiled row that they judge."""

    group: str
    socs: tuple[str, ...]
    chapter: str
    ops: Mapping[str, OpRule]
    by_op: Mapping[str, OpRule]


@dataclass(frozen=True)
class CpuRules:
    """Chapter 4: entries, their names by ONNX op, and which SoC runs ``all``, the ``rv`` subset or ``none``."""

    entries: tuple[CpuRule, ...]
    by_op: Mapping[str, tuple[CpuRule, ...]]
    availability: Mapping[str, str]
    chapter: str
    notes_section: str
