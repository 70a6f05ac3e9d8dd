"""One page per SoC: its registry line, inputs and outputs, and every NPU entry with its limits."""

from __future__ import annotations

from pages.backends import table

from ort_rknpu.listing import LimitSpec, OpSpec, SocSpec, socs
from ort_rknpu.present.listing import limit_text
from ort_rknpu.targets.io_rules import load_io


def pages() -> dict[str, str]:
    """File name -> Markdown."""
    return {f"{soc.name}.md": _page(soc) for soc in socs()}


def _page(soc: SocSpec) -> str:
    flash = soc.flash_attention
    facts = [
        ["rule group", soc.group],
        ["precisions", ", ".join(soc.precisions)],
        ["NPU cores", str(soc.npu_cores)],
        ["CPU operators", soc.cpu_ops],
        [
            "Flash Attention",
            f"{', '.join(flash.dtypes)}, driver {flash.min_driver}, runtime {flash.min_runtime}" if flash else "no",
        ],
    ]
    lines = [
        f"# {soc.name}",
        "",
        "Operator list 2.3.2. R with a number is a [reading](../../readings.md) of an unclear place.",
        *table(["", ""], facts),
        "## Inputs and outputs",
        *_inputs(soc),
        *_outputs(soc),
        "## NPU operators",
        "",
    ]
    seen: dict[tuple[LimitSpec, ...], str] = {}
    for entry in soc.npu:
        lines += _entry(soc, entry, seen)
    return "\n".join(lines)


def _code(text: str) -> str:
    """The text, as code where Markdown would take its asterisks for emphasis."""
    return f"`{text}`" if "*" in text else text


def _inputs(soc: SocSpec) -> list[str]:
    rules = load_io(soc.group)
    rows = [
        [
            row.dtype,
            row.rank,
            ", ".join(f"{dtype}: {device}" for dtype, device in row.converted_by.items()),
            str(row.width_align["image"]),
            str(row.width_align["other"]),
        ]
        for row in rules.inputs
    ]
    channels = ", ".join(map(str, rules.image_channels))
    header = ["first layer", "rank", "converted by", f"width alignment, {channels} channels", "other"]
    limits = [f"- First layer, {channels} channels: {_code(line)}" for line in soc.first_layer]
    return ["", f"Inputs ({rules.input_section}); alignment is for zero-copy.", *table(header, rows), *limits, ""]


def _outputs(soc: SocSpec) -> list[str]:
    rules = load_io(soc.group)
    rows = []
    for row in rules.outputs:
        for layout in row.layouts:
            align = layout.channel_align
            both = [str(align[kind]) if kind in align else "-" for kind in ("conv", "other")]
            rows.append([row.dtype, row.rank, layout.layout, *both, str(layout.hw_align or "-")])
    header = ["dtype", "rank", "layout", "channels, last layer a convolution", "channels, other", "height x width"]
    return ["", f"Outputs ({rules.output_section}): alignment in elements.", *table(header, rows)]


def _entry(soc: SocSpec, entry: OpSpec, seen: dict[tuple[LimitSpec, ...], str]) -> list[str]:
    title = f" ({entry.title})" if entry.title != entry.op else ""
    status = "" if entry.status == "supported" else f"; {entry.status.replace('_', ' ')}"
    core = (entry.multicore or {}).get(soc.name)
    multicore = f"; multi-core {core.replace('_', ' ')}" if core else ""
    lines = [f"### {entry.op}{title}", "", f"{entry.section}: {' or '.join(entry.activations)}{status}{multicore}.", ""]
    notes = [f"- note: {_code(note)}" for note in entry.notes]
    if not entry.limits:
        return [*lines, *notes]
    same = seen.setdefault(entry.limits, entry.op)
    if same != entry.op:
        return [*lines, f"Limits as {same}.", ""]
    for limit in entry.limits:
        reading = "" if limit.reading is None else f" (R{limit.reading})"
        lines.append(f"- `{limit.id}`: {_code(limit_text(limit))}{reading}")
        lines += [f"  - {_code(detail)}" for detail in limit.details]
    for label, tensors in (("input", entry.inputs), ("output", entry.outputs)):
        lines += [f"- {label} {_code(text)}" for text in tensors]
    return [*lines, *notes, ""]
