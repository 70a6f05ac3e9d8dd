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
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ort_rknpu.errors import RuleDataError
from ort_rknpu.targets.expressions import Expression
from ort_rknpu.targets.rules import CpuRule, CpuRules, GroupRules, Limit, OpRule, Tensor
from ort_rknpu.targets.socs import socs

SCHEMA = 1

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
