"""Reports as text for a terminal: a summary line to quote, then the reasons, worst first."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ort_rknpu.report import BACKEND_VERDICTS, SOC_VERDICTS, NodeResult, Report, TargetResult
from ort_rknpu.rules.clause import Clause

WIDTH = 120
MAX_REASONS = 20
MAX_COLUMNS = 8
_SEVERITY = {"unsupported": 0, "unknown": 1, "cpu": 2, "split": 3}
_STYLES = {
    "npu": "green",
    "supported": "green",
    "cpu": "yellow",
    "split": "yellow",
    "unsupported": "red",
    "unknown": "magenta",
    "folded": "dim",
    "not covered": "dim",
}


@dataclass(frozen=True)
class Reason:
    """What holds the same nodes back on the same targets: one clause or several that strike together."""

    verdict: str
    op: str
    clauses: tuple[Clause, ...]
    nodes: tuple[str, ...]
    socs: tuple[str, ...]
    actuals: tuple[tuple[str, ...], ...]


@dataclass
class _Found:
    clause: Clause
    nodes: dict[str, None] = field(default_factory=dict)
    socs: dict[str, None] = field(default_factory=dict)
    actuals: dict[str, None] = field(default_factory=dict)


def reasons(targets: Iterable[TargetResult]) -> list[Reason]:
    """Violated clauses by verdict and limit: the worst verdict first, then what holds back the most nodes.

    The op is the one that the rule judges, which for measured rules is the compiled one.
    """
    found: dict[tuple[str, ...], _Found] = {}
    for target in targets:
        for node in target.nodes:
            for clause in node.clauses:
                limit = clause.id.removeprefix(f"{target.soc}.")
                if limit == f"{node.op_type}.scope":
                    continue
                # SoCs differ in numbers only, other back ends in what a requirement of the same name means
                key = (node.verdict, limit, clause.text if target.is_backend else "")
                group = found.setdefault(key, _Found(clause))
                group.nodes[node.name] = None
                group.socs[target.soc] = None
                group.actuals[clause.actual] = None
    together: dict[tuple[Any, ...], list[_Found]] = {}
    for (verdict, limit, _), group in found.items():
        op = limit.partition(".")[0]
        together.setdefault((verdict, op, tuple(group.nodes), tuple(group.socs)), []).append(group)
    result = [
        Reason(verdict, op, tuple(g.clause for g in groups), nodes, socs, tuple(tuple(g.actuals) for g in groups))
        for (verdict, op, nodes, socs), groups in together.items()
    ]
    return sorted(result, key=lambda r: (_SEVERITY.get(r.verdict, 4), -len(r.nodes), r.op, r.clauses[0].id))


def summary_line(model: str, target: TargetResult) -> str:
    """One line that a person can quote."""
    counts = target.summary
    if target.is_backend:
        parts = [f"{counts[verdict.replace(' ', '_')]} {verdict}" for verdict in BACKEND_VERDICTS]
        return f"{model} on {target.label}: of {counts['nodes']} nodes {', '.join(parts)}."
    total = counts["nodes"] or 0
    working = total - (counts["folded"] or 0)
    npu = counts["npu"] or 0
    share = f" ({100 * npu / working:.1f} %)" if working else ""
    others = [f"{counts[v]} {w}" for v, w in _WORDS.items() if counts[v]]
    return (
        f"{model} on {target.label}: {npu} of {working} nodes that cost anything on the NPU{share}"
        f"{''.join(', ' + other for other in others)}; {counts['folded']} folded; "
        f"{_count(counts['partitions'], 'partition')}, {_count(counts['transitions'], 'transition')}, "
        f"{human_bytes(counts['boundary_bytes'])} across."
    )


_WORDS = {"cpu": "on the CPU", "split": "split", "unsupported": "unsupported", "unknown": "unknown"}


def _count(number: int | None, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def human_bytes(size: int | None) -> str:
    """``409.6 kB``; ``? B`` where not known."""
    if size is None:
        return "? B"
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def sentence(text: str) -> str:
    """The text with a capital at its start and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def report_text(report: Report, width: int = WIDTH) -> str:
    """The whole report as plain text."""
    return to_text(report_view(report), width)


def to_text(view: RenderableType, width: int = WIDTH) -> str:
    """A rich view as plain text of a fixed width, without colour."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(view, soft_wrap=False)
    output = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in output.splitlines())


def report_view(report: Report) -> RenderableType:
    """One target in detail, or several side by side."""
    parts: list[RenderableType] = []
    if len(report.targets) == 1:
        target = report.targets[0]
        parts.append(Text(summary_line(report.model, target), style="bold"))
        parts += [Text(note) for note in target.notes]
    else:
        parts += [Text(report.model, style="bold"), _side_by_side(report.targets)]
        parts += _nodes_side_by_side(report.targets)
        parts += [Text(note) for target in report.targets for note in target.notes]
    for target in report.targets:
        for reason in target.build.reasons:
            parts.append(
                Text(f"The toolkit {target.toolkit} refuses it for {target.soc}: {sentence(reason.text)}", style="red")
            )
    title = "What a target refuses" if any(t.is_backend for t in report.targets) else "What keeps nodes off the NPU"
    parts += _reasons_view(reasons(report.targets), title, many=len(report.targets) > 1)
    parts += _io_view(report.targets)
    return Group(*parts)


def _side_by_side(targets: Sequence[TargetResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    others = [v for v in BACKEND_VERDICTS if v not in SOC_VERDICTS and any(t.is_backend for t in targets)]
    table.add_column("target" if others else "SoC", no_wrap=True)
    table.add_column("precision")
    # with the back ends' columns the table is wide: verdicts that nothing got are left out
    verdicts = [v for v in SOC_VERDICTS if not others or any(target.summary.get(v) for target in targets)]
    columns: tuple[str, ...] = (*verdicts, *others, "partitions", "transitions")
    for name in columns:
        table.add_column(name, justify="right", style=_STYLES.get(name))
    table.add_column("across", justify="right")
    table.add_column("builds")
    for target in targets:
        counts = target.summary
        own = BACKEND_VERDICTS if target.is_backend else columns
        table.add_row(
            target.soc,
            target.precision or "",
            *(str(counts.get(name.replace(" ", "_"), "")) if name in own else "" for name in columns),
            "" if target.is_backend else human_bytes(counts.get("boundary_bytes")),
            "" if target.is_backend else "yes" if target.build.ok else "no",
        )
    return table


def _nodes_side_by_side(targets: Sequence[TargetResult]) -> list[RenderableType]:
    """The nodes that a back end covers, those with the same verdicts in one row."""
    backends = [target for target in targets if target.is_backend]
    if not backends or not 1 < len(targets) <= MAX_COLUMNS:
        return []
    rows: dict[tuple[str, ...], list[str]] = {}
    for index, node in enumerate(backends[0].nodes):
        if any(target.nodes[index].verdict != "not covered" for target in backends):
            cells = tuple(_cell(target, target.nodes[index]) for target in targets)
            rows.setdefault((node.op_type, *cells), []).append(node.name)
    if not rows:
        return []
    table = Table(box=box.SIMPLE_HEAD, title="Nodes that a back end covers", title_justify="left")
    for name in ("op", "nodes", *(target.label for target in targets), "for example"):
        table.add_column(name, justify="right" if name == "nodes" else "left", overflow="fold")
    for (op_type, *texts), names in rows.items():
        verdicts = [Text(text, style=_STYLES.get(text.split(":")[0], "")) for text in texts]
        table.add_row(op_type, str(len(names)), *verdicts, Text(names[0]))
    return [table]


def _cell(target: TargetResult, node: NodeResult) -> str:
    if not target.is_backend or not node.clauses or node.verdict == "not covered":
        return node.verdict
    return f"{node.verdict}: {', '.join(dict.fromkeys(clause.id.rsplit('.', 1)[-1] for clause in node.clauses))}"


def _reasons_view(found: list[Reason], title: str, many: bool) -> list[RenderableType]:
    if not found:
        return []
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("verdict")
    table.add_column("op")
    table.add_column("nodes", justify="right")
    if many:
        table.add_column("targets", max_width=16)
    table.add_column("reason")
    table.add_column("for example", max_width=28, overflow="fold")
    for reason in found[:MAX_REASONS]:
        cells: list[RenderableType] = [Text(reason.verdict, style=_STYLES.get(reason.verdict, ""))]
        cells += [reason.op, str(len(reason.nodes))]
        if many:
            cells.append(", ".join(reason.socs))
        cells += [_reason_text(reason), Text(reason.nodes[0])]
        table.add_row(*cells)
    parts: list[RenderableType] = [table]
    if len(found) > MAX_REASONS:
        parts.append(Text(f"and {len(found) - MAX_REASONS} more reasons, all of them in the JSON"))
    return parts


def _reason_text(reason: Reason) -> Text:
    text = Text()
    for clause, actuals in zip(reason.clauses, reason.actuals):
        actual = clause.actual + (f" and {len(actuals) - 1} others" if len(actuals) > 1 else "")
        text.append("\n" if text else "")
        text.append(sentence(clause.text))
        text.append(f" Is {actual}; allowed {clause.allowed}; {clause.source}.", style="dim")
        if clause.hint:
            text.append(f" {sentence(clause.hint)}", style="italic")
    return text


def _io_view(targets: Iterable[TargetResult]) -> list[RenderableType]:
    lines: dict[str, None] = {}
    for target in targets:
        for tensor in target.io:
            for clause in tensor["clauses"]:
                lines[
                    f"{target.soc}, {tensor['direction']} {tensor['name']}: {clause['text']} "
                    f"(is {clause['actual']}; allowed {clause['allowed']}; {clause['source']})"
                ] = None
    return [Text(line) for line in lines]


def node_view(target: TargetResult, node: NodeResult) -> RenderableType:
    """One node on one target: verdict, rows, and every clause with what would pass."""
    parts: list[RenderableType] = [
        Text.from_markup(
            f"[bold]{escape(node.name)}[/] ({escape(node.op_type)}) on {target.label}: "
            f"[{_STYLES.get(node.verdict, 'none')}]{node.verdict}[/]"
        )
    ]
    facts = [f"writes {', '.join(node.outputs)}"]
    if node.compiled_as:
        facts.append(f"compiled as {', '.join(node.compiled_as)}")
    if node.partition is not None:
        ids = node.partition if isinstance(node.partition, tuple) else (node.partition,)
        facts.append(f"partition {', '.join(map(str, ids))}")
    parts.append(Text("; ".join(facts)))
    for clause in (*node.clauses, *node.notes):
        parts.append(_clause_view(clause))
    if not node.clauses:
        parts.append(Text("No clause is violated."))
    return Group(*parts)


def _clause_view(clause: Clause) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("clause", Text(clause.id, style="bold"))
    table.add_row("requires", Text(clause.text))
    table.add_row("actual", Text(clause.actual))
    table.add_row("allowed", Text(clause.allowed))
    table.add_row("source", Text(clause.source))
    if clause.hint:
        table.add_row("would pass", Text(clause.hint))
    return table
