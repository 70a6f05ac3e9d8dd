"""The rules as tables: text and HTML of ``socs()`` and ``spec()``."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape as markup
from rich.table import Table

from ort_rknpu.listing import LimitSpec, OpSpec, SocSpec, SocTable, Spec
from ort_rknpu.present.text import to_text

_SOC_HEADER = ("SoC", "group", "precisions", "NPU cores", "NPU entries", "CPU ops", "Flash Attention")
_OP_HEADER = ("op", "device", "section", "status", "activations", "limits")


def _soc_row(soc: SocSpec) -> tuple[str, ...]:
    flash = soc.flash_attention
    condition = f"driver {flash.min_driver}, runtime {flash.min_runtime}, {', '.join(flash.dtypes)}" if flash else "no"
    usable = sum(entry.status != "not_supported" for entry in soc.npu)
    return (soc.name, soc.group, ", ".join(soc.precisions), str(soc.npu_cores), str(usable), soc.cpu_ops, condition)


def _op_row(entry: OpSpec) -> tuple[str, ...]:
    limits = ", ".join(limit.id for limit in entry.limits)
    return entry.op, entry.device, entry.section, entry.status, ", ".join(entry.activations), limits


def limit_text(limit: LimitSpec) -> str:
    """What a limit requires, in one line without its details."""
    when = f" when {limit.when}" if limit.when else ""
    printed = f" (printed: {limit.printed})" if limit.printed else ""
    return f"{limit.requires}{when}{printed}"


def _tables(result: object) -> list[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """(title, header, rows) of every table of a result."""
    if isinstance(result, SocTable):
        return [("SoCs", _SOC_HEADER, [_soc_row(soc) for soc in result])]
    assert isinstance(result, Spec)
    if not result.op:
        return [(f"Documented rules of {result.soc.name}", _OP_HEADER, [_op_row(entry) for entry in result.entries])]
    tables: list[tuple[str, Sequence[str], list[tuple[str, ...]]]] = []
    for entry in result.entries:
        rows: list[tuple[str, ...]] = []
        for limit in entry.limits:
            lines = "\n".join((limit_text(limit), *(f"  {detail}" for detail in limit.details)))
            rows.append((limit.id, lines, "" if limit.reading is None else str(limit.reading)))
        rows += [("input", text, "") for text in entry.inputs] + [("output", text, "") for text in entry.outputs]
        rows += [("note", text, "") for text in entry.notes]
        tables.append((_entry_title(result.soc, entry), ("limit", "requires", "reading"), rows))
    return tables


def _entry_title(soc: SocSpec, entry: OpSpec) -> str:
    named = f" ({entry.title})" if entry.title != entry.op else ""
    dtypes = f", {' or '.join(entry.activations)}" if entry.activations else ""
    status = "" if entry.status == "supported" else f", {entry.status.replace('_', ' ')}"
    none = "" if entry.limits else ", no limits"
    return f"{soc.name} {entry.device}: {entry.op}{named}, documented {entry.section}{dtypes}{status}{none}"


def view(result: object) -> RenderableType:
    """A result as rich tables."""
    parts: list[RenderableType] = []
    for title, header, rows in _tables(result):
        table = Table(*header, title=markup(title), title_justify="left", box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*map(markup, row))
        parts.append(table if rows else markup(title))
    return Group(*parts)


def text(result: object) -> str:
    """A result as plain text."""
    return to_text(view(result))


def fragment(result: object) -> str:
    """A result for a notebook cell."""
    parts = []
    for title, header, rows in _tables(result):
        lines = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
        head = f"<thead><tr>{_cells('th', header)}</tr></thead>"
        parts.append(f"<h3>{escape(title)}</h3><table>{head}<tbody>{lines}</tbody></table>")
    return "".join(parts)


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text).replace(chr(10), '<br>')}</{tag}>" for text in texts)


def page(result: object) -> str:
    """A result as a page of its own."""
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>ort-rknpu rules</title>\n{fragment(result)}\n'
