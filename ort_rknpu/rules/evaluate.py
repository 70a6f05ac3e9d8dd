"""Judges one op by the limits of one entry: every violated clause, and every one that cannot be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ort_rknpu.errors import RuleDataError
from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.clause import Clause
from ort_rknpu.rules.conditions import nearest
from ort_rknpu.rules.facts import FLOATS, Values, on_chip_dtype, shape_text
from ort_rknpu.rules.finding import Finding
from ort_rknpu.targets.rules import Limit, OpRule, Tensor

Verdicts = tuple[list[Clause], list[Clause]]
"""Clauses that are violated, clauses that cannot be decided."""


def plain_limits_hold(rule: OpRule, values: Values) -> bool:
    """Whether every limit without a form is known to hold: the quick answer for most ops.

    A limit that names a value which the op family does not have counts as not held, for :func:`limit_findings` to tell.
    """
    try:
        for name, low, high in rule.intervals:
            value = values[name]
            if value is None or value < low or value > high:
                return False
        return all(_holds(limit, values) for limit in rule.conditions)
    except KeyError:
        return False


def _holds(limit: Limit, values: Values) -> bool:
    applies = True if limit.when is None else limit.when(values)
    if not applies:
        return applies is False
    if limit.values is not None:
        return values[limit.id] in limit.values
    return limit.require is not None and bool(limit.require(values))


def limit_findings(limit: Limit, values: Values, run_form: Callable[[Limit], Iterator[Finding]]) -> Iterator[Finding]:
    """What one limit finds wrong with the values of an op.

    Raises:
        RuleDataError: the limit names a value that its op family does not have.
    """
    try:
        if limit.when is not None:
            applies = limit.when(values)
            if applies is False:
                return
            if applies is None:
                yield Finding(_missing(limit.when.names, values), f"{limit.when.source} known", unknown=True)
                return
        if limit.form:
            yield from run_form(limit)
        elif limit.require is not None:
            holds = limit.require(values)
            if not holds:
                yield _expression_finding(limit, values, holds is None)
        else:
            yield from _domain_findings(limit, values[limit.id])
    except KeyError as error:
        raise RuleDataError(f"limit {limit.id!r} reads {error}, which its op family does not have") from error


def _expression_finding(limit: Limit, values: Values, unknown: bool) -> Finding:
    assert limit.require is not None
    if unknown:
        return Finding(_missing(limit.require.names, values), limit.allowed or limit.require.source, unknown=True)
    actual, allowed = limit.require.describe(values)
    return Finding(actual, limit.allowed or allowed, limit.hint or nearest(limit.require, values))


def _domain_findings(limit: Limit, value: object) -> Iterator[Finding]:
    if value is None:
        yield Finding(f"{limit.id} not known", limit.allowed, limit.hint, unknown=True)
    elif limit.values is not None:
        if value not in limit.values:
            yield Finding(_show(value), limit.allowed, limit.hint)
    elif isinstance(value, int | float) and limit.low is not None and value < limit.low:
        yield Finding(_show(value), limit.allowed, limit.hint or f"{limit.id} = {limit.low} would pass")
    elif isinstance(value, int | float) and limit.high is not None and value > limit.high:
        yield Finding(_show(value), limit.allowed, limit.hint or f"{limit.id} = {limit.high} would pass")


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _missing(names: Sequence[str], values: Values) -> str:
    return ", ".join(name for name in names if values[name] is None) + " not known"


def to_clause(prefix: str, source: str, limit: Limit, finding: Finding, op: Op) -> Clause:
    """The clause for a finding; ``prefix`` is what stands before the limit's name in its id."""
    actual, hint = finding.actual, finding.hint or limit.hint
    if finding.unknown:
        actual = f"{actual} (inputs {_input_shapes(op)})"
        hint = hint or "give the model's input shapes"
    text = finding.text or limit_text(limit)
    if limit.reading is not None:
        text += f" (reading {limit.reading})"
    return Clause(f"{prefix}{limit.id}{finding.suffix}", text, actual, finding.allowed, source, hint)


def limit_text(limit: Limit) -> str:
    """What a limit requires, as a sentence."""
    when = f" when {limit.when.source}" if limit.when is not None else ""
    if limit.allowed:
        return f"{limit.id} must be {limit.allowed}{when}"
    return f"requires {limit.require.source if limit.require is not None else limit.id}{when}"


def _input_shapes(op: Op) -> str:
    return ", ".join(shape_text(value) for value in op.inputs)


def accepts(tensor: Tensor, value: Value, precision: str) -> bool | None:
    """Whether the tensor may have the dtype that ``value`` has on the chip, None where it is not known."""
    dtypes = tensor.dtypes
    if value.dtype is None:
        return None
    if value.dtype in FLOATS:
        constant = value.constant and "float const" in dtypes
        return constant or not {on_chip_dtype(value, precision), "float", "float scalar"}.isdisjoint(dtypes)
    if value.dtype in dtypes or f"{value.dtype} scalar" in dtypes:
        return True
    return "int" in dtypes and value.dtype.lstrip("u").startswith("int")


def dtype_clauses(prefix: str, source: str, rule: OpRule, op: Op, precision: str) -> Verdicts:
    """The clause ``dtype``, violated or undecided, that names every input of a dtype the entry does not take."""
    wrong: list[str] = []
    open_: list[str] = []
    allowed: dict[str, None] = {}
    for index, value in enumerate(op.inputs):
        if value is None or not rule.inputs:
            continue
        if index < len(rule.inputs):
            tensor = rule.inputs[index]
        elif rule.inputs[-1].variadic:
            tensor = rule.inputs[-1]
        else:
            break
        answer = accepts(tensor, value, precision)
        if answer:
            continue
        (open_ if answer is None else wrong).append(f"{tensor.name} {on_chip_dtype(value, precision) or 'not known'}")
        allowed.update(dict.fromkeys([f"{tensor.name} {' or '.join(tensor.dtypes)}"]))
    text = f"inputs must have a dtype that this op takes on the NPU (model run as {precision})"
    clauses = [
        [Clause(f"{prefix}.dtype", text, ", ".join(names), ", ".join(allowed), source, hint)] if names else []
        for names, hint in ((wrong, _dtype_hint(rule, precision, wrong)), (open_, ""))
    ]
    return clauses[0], clauses[1]


def _dtype_hint(rule: OpRule, precision: str, wrong: list[str]) -> str:
    on_chip = {"fp16": "float16", "int8": "int8"}[precision]
    if on_chip not in rule.activations and any(name.endswith(on_chip) for name in wrong):
        return f"build the model with activations in {' or '.join(rule.activations)}"
    return ""
