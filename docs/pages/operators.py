"""The page that sets every operator of the vendor's list against every SoC group."""

from __future__ import annotations

from pages.backends import table

from ort_rknpu.targets.ruledata import load_cpu, load_group
from ort_rknpu.targets.rules import GroupRules
from ort_rknpu.targets.socs import socs

_SHORT = {"int8": "i8", "int16": "i16", "float16": "f16"}


def page() -> str:
    """Markdown: NPU entries, CPU entries."""
    members: dict[str, list[str]] = {}
    for soc in socs().values():
        members.setdefault(soc.group, []).append(soc.name)
    groups = {group: load_group(group) for group in members}
    order = dict.fromkeys(name for rules in groups.values() for name in rules.ops)
    header = ["operator", *(" ".join(names) for names in members.values())]
    npu = [[name, *(_cell(rules, name) for rules in groups.values())] for name in sorted(order, key=str.lower)]
    cpu = load_cpu()
    lines = [
        [entry.title, entry.section, ", ".join(entry.onnx), _limits(entry.limits), "yes" if entry.rv else ""]
        for entry in cpu.entries
    ]
    runs = [
        ["all", ", ".join(name for name, kind in cpu.availability.items() if kind == "all")],
        ["the RV110x column", ", ".join(name for name, kind in cpu.availability.items() if kind == "rv")],
        ["none", ", ".join(name for name, kind in cpu.availability.items() if kind == "none")],
    ]
    return "\n".join(
        [
            "# Operators by SoC",
            "",
            "What the operator list 2.3.2 says; how we read its unclear places is in [readings](../readings.md).",
            "What the compiler was seen to do differs in places: `check` uses that unless told `--rules documented`.",
            "",
            "## NPU",
            "",
            "A cell names the section and the activation dtypes; limits are on the page of each SoC.",
            *table(header, npu),
            "## CPU",
            *table(["SoCs run", ""], runs),
            *table(["operator", "section", "ONNX", "limits", "RV110x"], lines),
        ]
    )


def _cell(rules: GroupRules, name: str) -> str:
    rule = rules.ops.get(name)
    if rule is None:
        return "-"
    if rule.status == "not_supported":
        return f"{rule.section} not supported"
    dtypes = "/".join(_SHORT[dtype] for dtype in rule.activations)
    via = " as convolution" if rule.status == "converted" else ""
    return f"{rule.section} {dtypes}{via}"


def _limits(limits: object) -> str:
    return "; ".join(f"{limit.id} {limit.allowed}" for limit in limits)  # type: ignore[attr-defined]
