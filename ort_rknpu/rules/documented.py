"""Verdicts from the written operator list alone.

NPU entry and all its limits hold: ``npu``. Else ``cpu`` where the CPU list has the op, its limits hold and the SoC
runs it. Else ``unsupported``. Where a shape or value that a rule needs is not known: ``unknown``.
"""

from __future__ import annotations

from dataclasses import replace

from ort_rknpu.graph import Op
from ort_rknpu.rules.clause import Clause, Placement
from ort_rknpu.rules.conv import is_depthwise
from ort_rknpu.rules.cpu import cpu_values
from ort_rknpu.rules.evaluate import Verdicts, dtype_clauses, limit_findings, plain_limits_hold, to_clause
from ort_rknpu.rules.facts import Values, shape_text
from ort_rknpu.rules.families import FORMS, values_of
from ort_rknpu.rules.finding import Case
from ort_rknpu.targets.ruledata import load_cpu, load_group
from ort_rknpu.targets.rules import CpuRule, GroupRules, OpRule
from ort_rknpu.targets.socs import Target

_ONNX_DOMAINS = ("", "ai.onnx")
_CLEAN = Placement("npu")


def place(op: Op, target: Target) -> Placement:
    """The documented verdict on one op, an ONNX node or a compiled row such as ``ConvExSwish`` or ``exNorm``.

    Args:
        op: shapes and dtypes resolved as far as they are known; constants carry their data.
        target: SoC and the precision of activations.

    Returns:
        The device, and every clause that keeps the op off the NPU: of the NPU list and, where the CPU cannot run it
        either, of the CPU list. For ``unknown`` the clauses that cannot be decided.

    Raises:
        ModelError: an attribute is of another kind or length than ONNX defines.
        RuleDataError: a shipped rule is malformed.
    """
    return Judge(op).place(target)


class Judge:
    """The documented verdicts on one op for many targets; what they share is worked out once.

    The op must not change in between.
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self._values: dict[str, Values] = {}
        self._placed: dict[tuple[str, str, str], tuple[str, Placement]] = {}

    def place(self, target: Target) -> Placement:
        """See :func:`place`."""
        soc = target.soc.name
        key = (target.group, target.precision, load_cpu().availability[soc])
        known = self._placed.get(key)
        if known is None:
            known = self._placed[key] = (soc, self._place(target))
        other, placement = known
        if other == soc or not placement.clauses:
            return placement
        clauses = (replace(clause, id=soc + clause.id.removeprefix(other)) for clause in placement.clauses)
        return Placement(placement.device, tuple(clauses))

    def _place(self, target: Target) -> Placement:
        violated, undecided = npu_clauses(self.op, target, self._values)
        if not violated:
            return Placement("unknown", tuple(undecided)) if undecided else _CLEAN
        cpu_violated, cpu_undecided = cpu_clauses(self.op, target)
        if cpu_violated:
            return Placement("unsupported", (*violated, *cpu_violated))
        if cpu_undecided:
            return Placement("unknown", (*violated, *cpu_undecided))
        return Placement("cpu", tuple(violated))


def npu_clauses(op: Op, target: Target, known: dict[str, Values] | None = None) -> Verdicts:
    """Clauses of the NPU list that ``op`` violates, and those that cannot be decided; both empty for a clean pass.

    ``known`` keeps the values of ``op`` by entry, for further targets.
    """
    rules = load_group(target.group)
    soc = target.soc.name
    rule = rules.by_op.get(op.op_type) if op.domain in _ONNX_DOMAINS else None
    if rule is not None and rule.name == "Conv":
        depthwise = is_depthwise(op)
        if depthwise is None:
            shapes = ", ".join(shape_text(value) for value in op.inputs)
            text = "the number of channels decides between convolution and depthwise convolution"
            source = f"documented {rule.section}"
            actual = f"channels not known (inputs {shapes})"
            return [], [Clause(f"{soc}.Conv.group", text, actual, "a known shape", source)]
        if depthwise:
            rule = rules.by_op["DepthwiseConv"]
    if rule is None:
        text = f"the NPU list of this SoC must have an entry for {op.op_type}"
        source = f"documented {rules.chapter}"
        denied = any(entry.denied for entry in load_cpu().by_op.get(op.op_type, ()))
        hint = "the CPU list has it, but the toolkit's own op table denies it (reading 45)" if denied else ""
        return [Clause(f"{soc}.{op.op_type}.npu_entry", text, "no entry", "an entry", source, hint)], []
    if rule.status == "not_supported":
        text = "the entry must not say that the op is not supported yet"
        source = f"documented {rule.section}"
        return [Clause(f"{soc}.{rule.name}.status", text, "not supported", "supported", source)], []
    return _entry_clauses(op, target, rule, rules, {} if known is None else known)


def _entry_clauses(op: Op, target: Target, rule: OpRule, rules: GroupRules, known: dict[str, Values]) -> Verdicts:
    prefix = f"{target.soc.name}.{rule.name}"
    own = rule.limits_section == rule.section
    source = f"documented {rule.section}" if own else f"documented {rule.section} ({rule.limits_section})"
    entry = f"{rule.limits_of or rule.name} {rule.judged_as}"
    values = known.get(entry)
    if values is None:
        values = known[entry] = values_of(op, rule.limits_of or rule.name, converted=bool(rule.judged_as))
    case = Case(op, target, rule, rules, values)
    violated, undecided = dtype_clauses(prefix, source, rule, op, target.precision)
    limits = rule.forms if plain_limits_hold(rule, values) else rule.limits
    for limit in limits:
        for finding in limit_findings(limit, values, lambda limit: FORMS[limit.form](case, limit)):
            clause = to_clause(f"{prefix}.", source, limit, finding, op)
            (undecided if finding.unknown else violated).append(clause)
    return violated, undecided


def cpu_clauses(op: Op, target: Target, kernel: str = "") -> Verdicts:
    """Clauses of the CPU list that ``op`` violates on this SoC, and those that cannot be decided.

    ``kernel`` names the entry to judge by where it is not the op's own (a compiled row such as ``exSoftmax13``).
    """
    rules = load_cpu()
    soc = target.soc.name
    prefix = f"{soc}.{op.op_type}"
    entries = rules.by_op.get(kernel or op.op_type, ()) if op.domain in _ONNX_DOMAINS else ()
    if not entries:
        text = f"the CPU list must have an entry for {op.op_type}"
        return [Clause(f"{prefix}.cpu_entry", text, "no entry", "an entry", f"documented {rules.chapter}")], []
    availability = rules.availability[soc]
    runnable = [entry for entry in entries if availability == "all" or (availability == "rv" and entry.rv)]
    if not runnable:
        names = ", ".join(entry.name for entry in rules.entries if entry.rv)
        allowed = "none" if availability == "none" else names
        text = f"the SoC must run {op.op_type} on the CPU (reading 47)"
        return [Clause(f"{prefix}.cpu_soc", text, "not run", allowed, f"documented {rules.notes_section}")], []
    if runnable[0].name == op.op_type:
        return _cpu_entry_clauses(op, prefix, runnable[0])
    first: Verdicts | None = None
    undecided: Verdicts | None = None
    for entry in runnable:
        verdicts = _cpu_entry_clauses(op, prefix, entry)
        if verdicts == ([], []):
            return verdicts
        if not verdicts[0]:
            undecided = undecided or verdicts
        first = first or verdicts
    return undecided or first or ([], [])


def _cpu_entry_clauses(op: Op, prefix: str, entry: CpuRule) -> Verdicts:
    violated: list[Clause] = []
    undecided: list[Clause] = []
    if not entry.limits:
        return violated, undecided
    values = cpu_values(op)
    for limit in entry.limits:
        for finding in limit_findings(limit, values, lambda _: iter(())):
            clause = to_clause(f"{prefix}.cpu_", f"documented {entry.section}", limit, finding, op)
            (undecided if finding.unknown else violated).append(clause)
    return violated, undecided
