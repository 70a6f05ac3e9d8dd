"""The rules as a user reads them: every SoC with its group, precisions and limits, and the entries for one op."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ort_rknpu.errors import OptionError
from ort_rknpu.result import Result
from ort_rknpu.targets.io_rules import IoRules, load_io
from ort_rknpu.targets.ruledata import load_cpu, load_group
from ort_rknpu.targets.rules import CpuRule, GroupRules, Limit, OpRule, Tensor
from ort_rknpu.targets.socs import FlashAttention, Soc, get_target
from ort_rknpu.targets.socs import socs as registry


@dataclass(frozen=True)
class LimitSpec:
    """One limit in words: what it requires, when it applies, its conditions one by one where it has several.

    Attributes:
        id: last part of the clause id; a form with several conditions appends to it.
        requires: what is accepted.
        when: the limit applies only then, or "".
        details: the conditions of a table.
        printed: the document's own statement where the reading differs, or "".
        reading: number in docs/readings.md, or None.
    """

    id: str
    requires: str
    when: str = ""
    details: tuple[str, ...] = ()
    printed: str = ""
    reading: int | None = None


@dataclass(frozen=True)
class OpSpec:
    """One entry of the NPU or CPU list.

    Attributes:
        op: our name of the entry.
        device: ``npu`` or ``cpu``.
        section, title: where it stands in the document, and under which name.
        status: ``supported``, ``not_supported``, or ``converted`` (judged by the limits of another entry).
        onnx: ONNX ops that the entry judges.
        rows: compiled rows that it judges.
        activations: accepted activation dtypes; empty on the CPU, whose entries name none.
        inputs, outputs: each tensor with its dtypes, dimensions and quantisation, in words.
        limits: in the order of the rule file.
        notes: facts of the entry that no verdict depends on.
        multicore: SoC -> ``yes``, ``no`` or ``not_yet``.
        readings: numbers in docs/readings.md.
    """

    op: str
    device: str
    section: str
    title: str
    status: str = "supported"
    onnx: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    limits: tuple[LimitSpec, ...] = ()
    notes: tuple[str, ...] = ()
    multicore: Mapping[str, str] | None = None
    readings: tuple[int, ...] = ()


@dataclass(frozen=True)
class SocSpec:
    """One SoC: what the registry says, chapter 5, and its entries of the NPU and the CPU list."""

    name: str
    group: str
    precisions: tuple[str, ...]
    npu_cores: int
    flash_attention: FlashAttention | None
    cpu_ops: str
    first_layer: tuple[str, ...]
    npu: tuple[OpSpec, ...]
    cpu: tuple[OpSpec, ...]

    def find(self, op: str) -> tuple[OpSpec, ...]:
        """Entries that judge the op of that name (ONNX op, ex op, compiled row or printed title), in any case."""
        wanted = op.lower()
        return tuple(
            entry
            for entry in (*self.npu, *self.cpu)
            if wanted in {name.lower() for name in (entry.op, entry.title, *entry.onnx, *entry.rows)}
            or (wanted == "conv" and entry.op == "DepthwiseConv")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return asdict(self)


class _Listing(Result):
    """A listing shows itself as tables."""

    def to_html(self) -> str:
        from ort_rknpu.present import listing

        return listing.page(self)

    def __str__(self) -> str:
        from ort_rknpu.present import listing

        return listing.text(self)

    def _repr_html_(self) -> str:
        from ort_rknpu.present import listing

        return listing.fragment(self)


@dataclass(frozen=True)
class SocTable(_Listing):
    """Every SoC; iterate, or index by name."""

    socs: tuple[SocSpec, ...]

    def __iter__(self) -> Iterator[SocSpec]:
        return iter(self.socs)

    def __len__(self) -> int:
        return len(self.socs)

    def __getitem__(self, name: str) -> SocSpec:
        for soc in self.socs:
            if soc.name == name:
                return soc
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        return {"schema": 1, "socs": [soc.to_dict() for soc in self.socs]}


@dataclass(frozen=True)
class Spec(_Listing):
    """The entries of one SoC, all of them or those that judge one op."""

    soc: SocSpec
    op: str
    entries: tuple[OpSpec, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "soc": self.soc.name,
            "group": self.soc.group,
            "op": self.op or None,
            "entries": [asdict(entry) for entry in self.entries],
        }


def socs() -> SocTable:
    """Every SoC with its group, precisions and limits, in alphabetical order.

    Raises:
        RuleDataError: a shipped rule file is malformed.
    """
    return SocTable(tuple(_soc_spec(soc) for soc in registry().values()))


def spec(soc: str, op: str = "") -> Spec:
    """The documented rules of one SoC, or those for one op.

    Args:
        soc: name of a SoC.
        op: ONNX op, ex op, compiled row or printed title, in any case; "" for all entries.

    Raises:
        TargetError: unknown SoC.
        OptionError: neither list has an entry for ``op``.
    """
    found = _soc_spec(get_target(soc).soc)
    if not op:
        return Spec(found, "", (*found.npu, *found.cpu))
    entries = found.find(op)
    if not entries:
        names = {name for entry in (*found.npu, *found.cpu) for name in (entry.op, *entry.onnx, *entry.rows)}
        near = difflib.get_close_matches(op, sorted(names), n=3)
        hint = f"; close: {', '.join(near)}" if near else ""
        raise OptionError(f"neither the NPU nor the CPU list of {found.name} has an entry for {op!r}{hint}")
    return Spec(found, op, entries)


def _soc_spec(soc: Soc) -> SocSpec:
    rules, cpu = load_group(soc.group), load_cpu()
    availability = cpu.availability[soc.name]
    runnable = [entry for entry in cpu.entries if availability == "all" or (availability == "rv" and entry.rv)]
    return SocSpec(
        soc.name,
        soc.group,
        soc.precisions,
        soc.npu_cores,
        soc.flash_attention,
        {"all": "all", "rv": f"{len(runnable)} of {len(cpu.entries)}", "none": "none"}[availability],
        tuple(_first_layer(load_io(soc.group))),
        tuple(_npu_spec(rule, rules) for rule in rules.ops.values()),
        tuple(_cpu_spec(entry) for entry in runnable),
    )


def _npu_spec(rule: OpRule, rules: GroupRules) -> OpSpec:
    return OpSpec(
        rule.name,
        "npu",
        rule.section,
        rule.title,
        rule.status,
        rule.onnx,
        rule.rows,
        rule.activations,
        tuple(map(_tensor_text, rule.inputs)),
        tuple(map(_tensor_text, rule.outputs)),
        tuple(_limit_spec(limit, rules) for limit in rule.limits),
        tuple(_notes(rule)),
        dict(rule.multicore),
        rule.readings,
    )


def _cpu_spec(entry: CpuRule) -> OpSpec:
    limits = tuple(_limit_spec(limit, None) for limit in entry.limits)
    return OpSpec(
        entry.name,
        "cpu",
        entry.section,
        entry.title,
        onnx=entry.onnx,
        limits=limits,
        notes=tuple(_notes(entry)),
        readings=entry.readings,
    )


def _tensor_text(tensor: Tensor) -> str:
    """``query: int8 or float16, [batch, channel, height, width], per-layer``."""
    parts = [" or ".join(tensor.dtypes)]
    if tensor.shape:
        parts.append(f"[{', '.join(tensor.shape.split())}]")
    if tensor.quant:
        parts.append(" or ".join(tensor.quant))
    if tensor.optional:
        parts.append("optional")
    return f"{tensor.name}: {', '.join(parts)}"


def _notes(rule: OpRule | CpuRule) -> Iterator[str]:
    for name, fact in rule.not_judged.items():
        yield f"{name}: {fact['printed']} in the document, not judged"
    if isinstance(rule, CpuRule) and rule.denied:
        yield "the toolkit's own op table denies it (reading 45)"
    if isinstance(rule, OpRule) and rule.flash_attention:
        dtypes, patterns = rule.flash_attention["dtypes"], rule.flash_attention["mask_patterns"]
        masks = ", ".join(f"[{', '.join(pattern.split())}]" for pattern in patterns)
        yield f"as Flash Attention: {' or '.join(dtypes)}, mask {masks}"


def _limit_spec(limit: Limit, rules: GroupRules | None) -> LimitSpec:
    details: tuple[str, ...] = ()
    if limit.form and rules is not None:
        requires, details = _FORMS[limit.form](limit, rules)
    elif limit.require is not None:
        requires = limit.allowed or limit.require.source
    else:
        requires = limit.allowed
    when = limit.when.source if limit.when is not None else ""
    return LimitSpec(limit.id, requires, when, details, limit.printed, limit.reading)


Description = tuple[str, tuple[str, ...]]


def _broadcast(limit: Limit, rules: GroupRules) -> Description:
    source = limit.params.get("patterns_of")
    patterns = rules.ops[source].limit("broadcast").params["patterns"] if source else limit.params["patterns"]
    scalar = ", a constant of one element" if limit.params.get("scalar") else ""
    details = []
    for pattern in patterns:
        ranges = [f"{axis} {pattern[axis][0]}..{pattern[axis][1]}" for axis in "hw" if axis in pattern]
        details.append(f"[{', '.join(pattern['from'])}]{' with ' + ', '.join(ranges) if ranges else ''}")
    return f"operands of the output's shape [b, c, h, w]{scalar}, or one of:", tuple(details)


def _perm_table(limit: Limit, rules: GroupRules) -> Description:
    details = []
    for perm, row in limit.params["table"].items():
        if row is None:
            continue
        for width, label in (("int8", "int8"), ("16bit", "16 bit")):
            conditions = ", ".join(condition.source for condition in row[width]) or "always"
            if row["int8"] == row["16bit"]:
                details.append(f"{perm}: {conditions}")
                break
            details.append(f"{perm} {label}: {conditions}")
    listed = sum(row is not None for row in limit.params["table"].values())
    return f"one of {listed} permutations of [n1, c1, h1, w1], with its conditions:", tuple(details)


def _resize_scale(limit: Limit, rules: GroupRules) -> Description:
    low, high = limit.params["factors"]
    return f"height and width by an integer {low}..{high} each; or [1, c, 1, 1] to [1, c, h, w] as Expand", ()


def _slice_steps(limit: Limit, rules: GroupRules) -> Description:
    details = tuple(
        f"{dtype}: with height = width = 1, channel, start and end multiples of {unit}, step 1..{unit} along channels"
        for dtype, unit in limit.params["subc"].items()
    )
    return "all steps 1, or:", details


def _first_layer(rules: IoRules) -> Iterator[str]:
    """The width limits of chapter 5 for inputs of 1, 3 or 4 channels."""
    for row in rules.inputs:
        if row.width is None:
            continue
        factors: dict[str, list[str]] = {}
        for kind, factor in row.width.factor.items():
            factors.setdefault(factor.source, []).append(kind)
        conditions = ", ".join(condition.source for condition in row.width.require)
        numbers = "; ".join(f"N = {source} for {', '.join(kinds)}" for source, kinds in factors.items())
        yield f"{row.dtype}, rank {row.rank}: {conditions} with {numbers}"


def _first_layer_form(limit: Limit, rules: GroupRules) -> Description:
    io = load_io(rules.group)
    channels = ", ".join(map(str, io.image_channels))
    return f"as first layer with {channels} channels, the width of {io.input_section}:", tuple(_first_layer(io))


_FORMS: dict[str, Callable[[Limit, GroupRules], Description]] = {
    "broadcast": _broadcast,
    "first_layer": _first_layer_form,
    "full_sequence": lambda limit, rules: ("absent, or a constant equal to seq_length for every batch", ()),
    "perm_table": _perm_table,
    "resize_scale": _resize_scale,
    "slice_steps": _slice_steps,
    "slope": lambda limit, rules: ("a constant of one element or one per channel", ()),
    "swap_passes": lambda limit, rules: (f"transpose {limit.params['perm']} passes before and behind", ()),
}
