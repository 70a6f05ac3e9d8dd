"""Loads the documented rules: one file per SoC group, the CPU list, the input and output limits, the definitions.

A rule file is JSON. An op's ``limits`` map a limit's name to one of

- ``"1..31"`` : the value of that name lies in the closed interval
- ``[1, 2, 4, 8]`` : it is one of these
- an object: ``in`` (either of the above), ``require`` (an expression that holds) or ``form`` (a named predicate of
  ``ort_rknpu.rules`` with its numbers); and ``when`` (applies only then), ``allowed`` (short text), ``hint``,
  ``printed`` (what the document says where our reading differs), ``reading`` (number in docs/readings.md).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

from ort_rknpu.errors import RuleDataError
from ort_rknpu.targets.expressions import Expression
from ort_rknpu.targets.socs import socs

SCHEMA = 1
Status = Literal["supported", "not_supported", "converted"]

_FORMS: dict[str, frozenset[str]] = {
    "broadcast": frozenset({"patterns", "patterns_of", "scalar", "inputs"}),
    "first_layer": frozenset(),
    "full_sequence": frozenset(),
    "perm_table": frozenset({"constants", "table"}),
    "resize_scale": frozenset({"factors", "patterns_of"}),
    "slice_steps": frozenset({"subc"}),
    "slope": frozenset({"patterns"}),
    "swap_passes": frozenset({"perm"}),
}
"""Named predicates and the numbers they take from the data."""

_LIMIT_FIELDS = frozenset({"in", "require", "form", "when", "allowed", "hint", "printed", "reading"})
_TENSOR_FIELDS = frozenset(
    {"name", "dtypes", "printed", "optional", "shape", "printed_shape", "quant", "count", "variadic"}
)
_OP_FIELDS = frozenset(
    {
        "section",
        "title",
        "kind",
        "status",
        "judged_as",
        "onnx",
        "rows",
        "chains",
        "limits_of",
        "limits_implied",
        "activations",
        "inputs",
        "outputs",
        "limits",
        "not_judged",
        "flash_attention",
        "multicore",
        "readings",
    }
)
_CPU_FIELDS = frozenset(
    {"section", "name", "title", "kind", "onnx", "rv", "limits", "denied", "not_judged", "readings"}
)
_KINDS = ("op", "fused", "extension", "internal")
_MULTICORE = ("yes", "no", "not_yet")
_INTERVAL = re.compile(r"(-?\d+)\.\.(-?\d+)?")


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


def read_json(name: str) -> dict[str, Any]:
    """One shipped rule file. RuleDataError where it is no JSON object of schema 1."""
    try:
        data = json.loads(files("ort_rknpu.targets").joinpath("documented", name).read_text("utf-8"))
    except ValueError as error:
        raise RuleDataError(f"{name}: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise RuleDataError(f"{name}: schema is not {SCHEMA}")
    return data


def check_fields(where: str, data: Mapping[str, Any], allowed: Iterable[str], required: Iterable[str] = ()) -> None:
    """RuleDataError where ``data`` has a field that is not allowed or lacks a required one."""
    unknown = sorted(set(data) - set(allowed))
    if unknown:
        raise RuleDataError(f"{where}: unknown fields {unknown}")
    missing = sorted(set(required) - set(data))
    if missing:
        raise RuleDataError(f"{where}: missing fields {missing}")


def parse_limit(where: str, limit_id: str, data: Any) -> Limit:
    """A limit from its JSON form (see the module's docstring). RuleDataError where it is malformed."""
    where = f"{where}: limit {limit_id!r}"
    if not isinstance(data, dict):
        data = {"in": data}
    kinds = [kind for kind in ("in", "require", "form") if kind in data]
    if len(kinds) != 1:
        raise RuleDataError(f"{where}: needs exactly one of in, require, form")
    form = data.get("form", "")
    if form and form not in _FORMS:
        raise RuleDataError(f"{where}: unknown form {form!r}; known: {', '.join(_FORMS)}")
    check_fields(where, data, _LIMIT_FIELDS | _FORMS.get(form, frozenset()))
    low = high = values = require = None
    allowed = data.get("allowed", "")
    if "in" in data:
        low, high, values = _parse_domain(where, data["in"])
        allowed = allowed or _domain_text(low, high, values)
    elif "require" in data:
        require = Expression(data["require"])
    reading = data.get("reading")
    if reading is not None and not isinstance(reading, int):
        raise RuleDataError(f"{where}: reading is no number")
    return Limit(
        limit_id,
        low,
        high,
        values,
        require,
        form,
        _parse_params(where, {key: value for key, value in data.items() if key not in _LIMIT_FIELDS}),
        Expression(data["when"]) if "when" in data else None,
        allowed,
        data.get("hint", ""),
        data.get("printed", ""),
        reading,
    )


def _parse_domain(where: str, domain: Any) -> tuple[int | None, int | None, tuple[Any, ...] | None]:
    if isinstance(domain, str):
        match = _INTERVAL.fullmatch(domain)
        if match is None:
            raise RuleDataError(f"{where}: malformed interval {domain!r}")
        low, high = int(match[1]), None if match[2] is None else int(match[2])
        if high is not None and high < low:
            raise RuleDataError(f"{where}: empty interval {domain!r}")
        return low, high, None
    if not isinstance(domain, list) or not domain:
        raise RuleDataError(f"{where}: neither an interval nor a list of values")
    return None, None, tuple(tuple(value) if isinstance(value, list) else value for value in domain)


def _domain_text(low: int | None, high: int | None, values: tuple[Any, ...] | None) -> str:
    if values is None:
        return str(low) if low == high else f"{low}..{'' if high is None else high}"
    return " or ".join("x".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values)


def _parse_params(where: str, params: dict[str, Any]) -> dict[str, Any]:
    if "factors" in params:
        params["factors"] = _parse_domain(where, params["factors"])[:2]
    for pattern in params.get("patterns", ()):
        check_fields(f"{where}: pattern", pattern, {"from", "h", "w"}, {"from"})
        for letter in ("h", "w"):
            if letter in pattern:
                pattern[letter] = _parse_domain(where, pattern[letter])[:2]
        pattern["from"] = tuple(pattern["from"].split())
        if len(pattern["from"]) != 4 or set(pattern["from"]) - set("bchw1"):
            raise RuleDataError(f"{where}: malformed pattern {pattern['from']}")
    if "table" in params:
        constants = params["constants"]
        for perm, row in params["table"].items():
            if sorted(perm) != list("0123"):
                raise RuleDataError(f"{where}: {perm!r} is no permutation of four axes")
            if isinstance(row, dict):
                check_fields(f"{where}: perm {perm}", row, {"int8", "16bit"}, {"int8", "16bit"})
                row = {width: tuple(Expression(text, constants) for text in row[width]) for width in row}
            elif row is not None:
                conditions = tuple(Expression(text, constants) for text in row)
                row = {"int8": conditions, "16bit": conditions}
            params["table"][perm] = row
    return params


def _parse_tensors(where: str, rows: list[dict[str, Any]]) -> tuple[Tensor, ...]:
    result = []
    for row in rows:
        check_fields(where, row, _TENSOR_FIELDS, {"name", "dtypes"})
        result.append(
            Tensor(
                row["name"],
                tuple(row["dtypes"]),
                row.get("shape", ""),
                tuple(row.get("quant", ())),
                row.get("optional", False),
                row.get("variadic", False),
                tuple(row.get("printed", ())),
                row.get("printed_shape", ""),
            )
        )
    return tuple(result)


def _parse_op(where: str, name: str, data: dict[str, Any], known_socs: set[str]) -> OpRule:
    check_fields(where, data, _OP_FIELDS, {"section"})
    status = data.get("status", "supported")
    if status not in ("supported", "not_supported", "converted") or (status == "converted") != ("judged_as" in data):
        raise RuleDataError(f"{where}: status {status!r}")
    if data.get("kind", "op") not in _KINDS:
        raise RuleDataError(f"{where}: kind {data['kind']!r}")
    if status == "supported" and not data.get("activations"):
        raise RuleDataError(f"{where}: no activation dtypes")
    if (status == "supported") != ("limits" in data or "limits_of" in data):
        raise RuleDataError(f"{where}: a supported entry has limits or limits_of, no other does")
    multicore = data.get("multicore", {})
    if set(multicore) - known_socs or set(multicore.values()) - set(_MULTICORE):
        raise RuleDataError(f"{where}: multicore {multicore}")
    if "flash_attention" in data:
        check_fields(where, data["flash_attention"], {"dtypes", "mask_patterns"}, {"dtypes", "mask_patterns"})
    return OpRule(
        name,
        data["section"],
        data.get("title", name),
        data.get("kind", "op"),
        status,
        data.get("judged_as", ""),
        tuple(data.get("onnx", ())),
        tuple(data.get("rows", ())),
        tuple(tuple(chain) for chain in data.get("chains", ())),
        data.get("limits_of", ""),
        data["section"],
        tuple(data.get("activations", ())),
        _parse_tensors(where, data.get("inputs", [])),
        _parse_tensors(where, data.get("outputs", [])),
        tuple(parse_limit(where, limit_id, limit) for limit_id, limit in data.get("limits", {}).items()),
        data.get("not_judged", {}),
        data.get("flash_attention", {}),
        multicore,
        tuple(data.get("readings", ())),
    )


def parse_group(name: str, data: dict[str, Any]) -> GroupRules:
    """The rules of one SoC group from their JSON form.

    Raises:
        RuleDataError: an unknown or missing field, a malformed interval or expression, a dangling reference.
    """
    fields = {"group", "socs", "chapter", "ops"}
    check_fields(name, data, fields | {"schema", "document"}, fields)
    expected = sorted(soc.name for soc in socs().values() if soc.group == data["group"])
    if sorted(data["socs"]) != expected:
        raise RuleDataError(f"{name}: SoCs {data['socs']}, the registry has {expected}")
    own = {op: _parse_op(f"{name}: {op}", op, row, set(expected)) for op, row in data["ops"].items()}
    ops = {op: _inherit(name, rule, own) for op, rule in own.items()}
    by_op: dict[str, OpRule] = {}
    for rule in ops.values():
        for judged in (rule.name, *rule.onnx, *rule.rows):
            if by_op.setdefault(judged, rule) is not rule:
                raise RuleDataError(f"{name}: {judged!r} is judged by {by_op[judged].name} and {rule.name}")
    return GroupRules(data["group"], tuple(data["socs"]), data["chapter"], ops, by_op)


def _inherit(name: str, rule: OpRule, own: Mapping[str, OpRule]) -> OpRule:
    base_name = rule.limits_of or rule.judged_as
    if not base_name:
        return rule
    base = own.get(base_name)
    if base is None or base.limits_of:
        raise RuleDataError(f"{name}: {rule.name}: no entry {base_name!r} with limits of its own")
    values = {key: getattr(rule, key) for key in rule.__dataclass_fields__}
    values |= {"limits": base.limits, "inputs": base.inputs, "outputs": base.outputs, "limits_section": base.section}
    values["activations"] = rule.activations or base.activations
    return OpRule(**values)


@cache
def load_group(group: str) -> GroupRules:
    """The rules of one SoC group, read once. RuleDataError where the file is malformed."""
    name = f"{group}.json"
    rules = parse_group(name, read_json(name))
    if rules.group != group:
        raise RuleDataError(f"{name}: holds group {rules.group!r}")
    return rules


def parse_cpu(name: str, data: dict[str, Any]) -> CpuRules:
    """The CPU list from its JSON form. RuleDataError as for :func:`parse_group`."""
    fields = {"availability", "entries", "chapter", "notes_section"}
    check_fields(name, data, fields | {"schema", "document", "readings"}, fields)
    if set(data["availability"]) != set(socs()) or set(data["availability"].values()) - {"all", "rv", "none"}:
        raise RuleDataError(f"{name}: availability must give all, rv or none for every SoC")
    entries = []
    by_op: dict[str, list[CpuRule]] = {}
    for row in data["entries"]:
        where = f"{name}: {row.get('section')}"
        check_fields(where, row, _CPU_FIELDS, {"section", "name"})
        if row.get("kind", "op") not in _KINDS:
            raise RuleDataError(f"{where}: kind {row['kind']!r}")
        rule = CpuRule(
            row["name"],
            row["section"],
            row.get("title", row["name"]),
            row.get("kind", "op"),
            tuple(row.get("onnx", ())),
            row.get("rv", False),
            tuple(parse_limit(where, limit_id, limit) for limit_id, limit in row.get("limits", {}).items()),
            row.get("denied", False),
            row.get("not_judged", {}),
            tuple(row.get("readings", ())),
        )
        entries.append(rule)
        for judged in dict.fromkeys((rule.name, *rule.onnx)):
            by_op.setdefault(judged, []).append(rule)
    for judged, rules in by_op.items():
        rules.sort(key=lambda rule: rule.name != judged)
    return CpuRules(
        tuple(entries),
        {judged: tuple(rules) for judged, rules in by_op.items()},
        data["availability"],
        data["chapter"],
        data["notes_section"],
    )


@cache
def load_cpu() -> CpuRules:
    """The CPU list, read once. RuleDataError where the file is malformed."""
    return parse_cpu("cpu.json", read_json("cpu.json"))


@cache
def definitions() -> dict[str, Expression]:
    """The quantities that chapter 6 defines, by name."""
    data = read_json("definitions.json")
    check_fields("definitions.json", data, {"schema", "document", "chapter", "definitions"}, {"definitions"})
    result = {}
    for name, row in data["definitions"].items():
        check_fields(f"definitions.json: {name}", row, {"section", "is"}, {"section", "is"})
        result[name] = Expression(row["is"])
    return result
