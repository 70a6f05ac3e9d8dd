"""Loads the measured rules: one file per toolkit version, a later version as a file of differences.

A file holds ``devices`` (rows that are always on one device), ``cpu_kernels`` (rows that the CPU list has under other
names), ``limits`` (op -> limit name -> limit) and ``refused`` (the same: conditions that the build of a model with such
a node needs; ``rows`` the same for compiled rows) and ``overflow`` (a list of limits with ``ops`` and ``name``: rows
that the compiler prints for the NPU but whose values do not fit a register). A limit is an object with ``require`` (an
expression over the values of ``ort_rknpu.rules.compiled``) or ``form`` (a named predicate of
``ort_rknpu.rules.relayout`` or ``ort_rknpu.rules.build`` with its numbers), and may carry ``on`` (the targets it holds
for: ``group``, ``group/precision``, ``/precision`` or a SoC; all where absent), ``when`` (it applies only then),
``allowed``, ``hint`` and ``source`` (the probe; the op's own name where absent). In a file of differences a limit that
is null is taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ort_rknpu.errors import RuleDataError
from ort_rknpu.targets.expressions import Expression
from ort_rknpu.targets.socs import PRECISIONS, TOOLKITS, Target, socs

SCHEMA = 1
_FILE_FIELDS = frozenset({"schema", "toolkit", "extends", "devices", "cpu_kernels", "limits", "refused", "overflow"})
_LIMIT_FIELDS = frozenset({"require", "form", "on", "when", "allowed", "hint", "source"})
_REFUSED_FIELDS = frozenset({"newest_opset", "nodes", "rows"})
_OVERFLOW_FIELDS = _LIMIT_FIELDS | {"ops", "name"}
_DEVICE_FIELDS = frozenset({"device", "ops", "source"})


@dataclass(frozen=True)
class MeasuredLimit:
    """One condition that keeps a compiled op on the NPU.

    Attributes:
        id: last part of the clause id.
        source: where it was measured, for example ``measured 2.3.2: probes Resize scale``.
        require: expression that holds for an op on the NPU, or None where ``form`` or ``never`` is set.
        never: written ``"require": "never"``: no such op was seen on the NPU of these targets.
        form, params: named predicate and its numbers.
        on: targets it holds for, empty for all.
        when: the limit applies only where this holds.
        allowed, hint: short texts, or "".
    """

    id: str
    source: str
    require: Expression | None = None
    never: bool = False
    form: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    on: frozenset[str] = frozenset()
    when: Expression | None = None
    allowed: str = ""
    hint: str = ""

    def applies_to(self, target: Target) -> bool:
        """Whether the limit holds for this SoC group and precision."""
        return not self.on or not self.on.isdisjoint(_names(target))


@dataclass(frozen=True)
class MeasuredOp:
    """What was measured for one kind of compiled row: a fixed device, or limits (none: always on the NPU)."""

    name: str
    source: str
    device: Literal["npu", "cpu"] = "npu"
    limits: tuple[MeasuredLimit, ...] = ()


@dataclass(frozen=True)
class MeasuredRules:
    """The measured rules of one toolkit version.

    Attributes:
        ops: by the name of the compiled row.
        overflow: by row, limits within which what the compiler writes for the NPU fits its registers.
        cpu_kernels: row -> names to look for in the CPU list, where they are not the row's own.
        refused_nodes, refused_rows: conditions under which the build survives, by ONNX op and by compiled row.
        newest_opset: the newest opset that the toolkit loads.
    """

    ops: Mapping[str, MeasuredOp]
    overflow: Mapping[str, tuple[MeasuredLimit, ...]]
    cpu_kernels: Mapping[str, tuple[str, ...]]
    refused_nodes: Mapping[str, tuple[MeasuredLimit, ...]]
    refused_rows: Mapping[str, tuple[MeasuredLimit, ...]]
    newest_opset: int


def _names(target: Target) -> tuple[str, ...]:
    return target.soc.name, target.group, f"{target.group}/{target.precision}", f"/{target.precision}"


@cache
def measured_rules(toolkit: str) -> MeasuredRules:
    """The measured rules of a toolkit version.

    Raises:
        RuleDataError: no file for that version, or one that is inconsistent.
    """
    if toolkit not in TOOLKITS:
        raise RuleDataError(f"no measured rules for toolkit {toolkit!r}")
    text = files("ort_rknpu.targets").joinpath("measured", f"{toolkit}.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    _known(data, _FILE_FIELDS, f"measured {toolkit}")
    if data["schema"] != SCHEMA or data["toolkit"] != toolkit:
        raise RuleDataError(f"measured {toolkit}: schema {data['schema']}, toolkit {data['toolkit']!r}")
    base = measured_rules(data["extends"]) if "extends" in data else MeasuredRules({}, {}, {}, {}, {}, 0)
    result = dict(base.ops)
    for entry in data.get("devices", ()):
        _known(entry, _DEVICE_FIELDS, f"measured {toolkit}: devices")
        if entry["device"] not in ("npu", "cpu"):
            raise RuleDataError(f"measured {toolkit}: device {entry['device']!r}")
        for name in entry["ops"]:
            source = f"measured {toolkit}: {entry.get('source') or 'probes ' + name}"
            result[name] = MeasuredOp(name, source, entry["device"])
    for name, entries in data.get("limits", {}).items():
        old = result[name].limits if name in result else ()
        limits = _merged(toolkit, name, old, entries)
        result[name] = MeasuredOp(name, f"measured {toolkit}: probes {name}", "npu", limits)
    overflow = dict(base.overflow)
    for entry in data.get("overflow", ()):
        _known(entry, _OVERFLOW_FIELDS, f"measured {toolkit}: overflow")
        own = {key: item for key, item in entry.items() if key in _LIMIT_FIELDS}
        for name in entry["ops"]:
            limit = _limit(toolkit, name, f"{entry['name']}.overflow", own)
            overflow[name] = (*overflow.get(name, ()), limit)
    kernels = {name: tuple(names) for name, names in data.get("cpu_kernels", {}).items()}
    refused = data.get("refused", {})
    _known(refused, _REFUSED_FIELDS, f"measured {toolkit}: refused")
    nodes, rows = dict(base.refused_nodes), dict(base.refused_rows)
    for merged, entries in ((nodes, refused.get("nodes", {})), (rows, refused.get("rows", {}))):
        for name, limits_of_op in entries.items():
            merged[name] = _merged(toolkit, name, merged.get(name, ()), limits_of_op)
    newest_opset = refused.get("newest_opset", base.newest_opset)
    return MeasuredRules(result, overflow, {**base.cpu_kernels, **kernels}, nodes, rows, newest_opset)


def _merged(
    toolkit: str, op: str, base: tuple[MeasuredLimit, ...], entries: Mapping[str, Any]
) -> tuple[MeasuredLimit, ...]:
    """The limits of an op with a file's entries laid over them."""
    result = {limit.id: limit for limit in base}
    for limit_id, entry in entries.items():
        result.pop(limit_id, None)
        if entry is not None:
            result[limit_id] = _limit(toolkit, op, limit_id, entry)
    return tuple(result.values())


def _limit(toolkit: str, op: str, limit_id: str, entry: Mapping[str, Any]) -> MeasuredLimit:
    where = f"measured {toolkit}: {op}.{limit_id}"
    _known(entry, _LIMIT_FIELDS, where)
    if ("require" in entry) == ("form" in entry):
        raise RuleDataError(f"{where}: needs either require or form")
    form = dict(entry.get("form", {}))
    on = frozenset(entry.get("on", ()))
    groups = {name for soc in socs().values() for name in (soc.name, soc.group)}
    for name in on:
        group, _, precision = name.partition("/")
        if (group and group not in groups) or (precision and precision not in PRECISIONS) or not name.strip("/"):
            raise RuleDataError(f"{where}: unknown target {name!r}")
    return MeasuredLimit(
        id=limit_id,
        source=f"measured {toolkit}: probes {entry.get('source', op)}",
        require=Expression(entry["require"]) if entry.get("require", "never") != "never" else None,
        never=entry.get("require") == "never",
        form=form.pop("name", ""),
        params=form,
        on=on,
        when=Expression(entry["when"]) if "when" in entry else None,
        allowed=entry.get("allowed", ""),
        hint=entry.get("hint", ""),
    )


def _known(entry: Mapping[str, Any], fields: frozenset[str], where: str) -> None:
    unknown = set(entry) - fields
    if unknown:
        raise RuleDataError(f"{where}: unknown fields {sorted(unknown)}")
