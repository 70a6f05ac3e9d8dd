"""Reports as text for a terminal: a summary line to quote, then the reasons, worst first."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ort_rknpu.report import SOC_VERDICTS, NodeResult, Report, TargetResult
from ort_rknpu.rules.clause import Clause

WIDTH = 120
MAX_REASONS = 25
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


@dataclass
class Reason:
    """One clause and the nodes it holds back, over all targets of a report."""

    verdict: str
    op_type: str
    clause: Clause
    nodes: dict[str, None] = field(default_factory=dict)
    socs: dict[str, None] = field(default_factory=dict)
    actuals: dict[str, None] = field(default_factory=dict)


def reasons(targets: Iterable[TargetResult]) -> list[Reason]:
    """Violated clauses grouped by verdict, op and limit: the worst verdict first, then the most nodes."""
    found: dict[tuple[str, str, str], Reason] = {}
    for target in targets:
        for node in target.nodes:
            for clause in node.clauses:
                limit = clause.id.removeprefix(f"{target.soc}.")
                key = (node.verdict, node.op_type, limit)
                reason = found.setdefault(key, Reason(node.verdict, node.op_type, clause))
                reason.nodes[node.name] = None
                reason.socs[target.soc] = None
                reason.actuals[clause.actual] = None
    return sorted(found.values(), key=lambda r: (_SEVERITY.get(r.verdict, 4), -len(r.nodes), r.op_type, r.clause.id))


def summary_line(model: str, target: TargetResult) -> str:
    """One line that a person can quote."""
    counts = target.summary
    if "npu" not in counts:
        parts = [f"{counts[key]} {key.replace('_', ' ')}" for key in counts if key != "nodes"]
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
        parts += [Text(note) for target in report.targets for note in target.notes]
    for target in report.targets:
        for reason in target.build.reasons:
            parts.append(Text(f"The toolkit {target.toolkit} refuses it for {target.soc}: {reason.text}", style="red"))
    parts += _reasons_view(reasons(report.targets), many=len(report.targets) > 1)
    parts += _io_view(report.targets)
    return Group(*parts)


def _side_by_side(targets: Iterable[TargetResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name in ("SoC", "precision"):
        table.add_column(name)
    columns: tuple[str, ...] = (*SOC_VERDICTS, "partitions", "transitions")
    for name in columns:
        table.add_column(name, justify="right", style=_STYLES.get(name))
    table.add_column("across", justify="right")
    table.add_column("builds")
    for target in targets:
        counts = target.summary
        table.add_row(
            target.soc,
            target.precision or "",
            *(str(counts.get(name, "")) for name in columns),
            human_bytes(counts.get("boundary_bytes")),
            "yes" if target.build.ok else "no",
        )
    return table


def _reasons_view(found: list[Reason], many: bool) -> list[RenderableType]:
    if not found:
        return []
    table = Table(box=box.SIMPLE_HEAD, title="What keeps nodes off the NPU", title_justify="left")
    table.add_column("verdict")
    table.add_column("op")
    table.add_column("nodes", justify="right")
    if many:
        table.add_column("SoCs", max_width=24)
    table.add_column("reason")
    table.add_column("for example", max_width=30, overflow="fold")
    for reason in found[:MAX_REASONS]:
        cells: list[RenderableType] = [Text(reason.verdict, style=_STYLES.get(reason.verdict, ""))]
        cells += [reason.op_type, str(len(reason.nodes))]
        if many:
            cells.append(", ".join(reason.socs))
        cells += [_reason_text(reason), Text(next(iter(reason.nodes)))]
        table.add_row(*cells)
    parts: list[RenderableType] = [table]
    if len(found) > MAX_REASONS:
        parts.append(Text(f"and {len(found) - MAX_REASONS} more reasons, all of them in the JSON"))
    return parts


def _reason_text(reason: Reason) -> Text:
    clause = reason.clause
    actual = clause.actual + (f" and {len(reason.actuals) - 1} others" if len(reason.actuals) > 1 else "")
    text = Text(clause.text)
    text.append(f"\nis {actual}; allowed {clause.allowed}; {clause.source}", style="dim")
    if clause.hint:
        text.append(f"\n{clause.hint}", style="italic")
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
