"""The page of the measured limits and of the probes that they were read from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pages.backends import table

from ort_rknpu.targets.measurements import MeasuredLimit, MeasuredRules, measured_rules
from ort_rknpu.targets.socs import TOOLKITS

_PROBES = Path(__file__).parents[1] / "data" / "probes.txt"
_SOURCE = re.compile(r"measured (\S+): probes (.+)")


def page() -> str:
    """Markdown: per op its limits in every toolkit version, then what the probes gave."""
    versions = {toolkit: measured_rules(toolkit) for toolkit in TOOLKITS}
    lines = [
        "# Measured limits",
        "",
        "What keeps a compiled op on the NPU, where the build ends, and what overflows, as seen in one-op models given",
        "to the vendor's toolkit. `check` quotes the probe as the source of a clause. Without a target: every SoC.",
    ]
    rows: dict[str, list[list[str]]] = {}
    for toolkit, rules in versions.items():
        for kind, op, limit in _limits(rules):
            match = _SOURCE.fullmatch(limit.source)
            if match is None or match[1] != toolkit:
                continue
            rows.setdefault(op, []).append(
                [toolkit, kind, limit.id, " ".join(sorted(limit.on)), _condition(limit), match[2]]
            )
    for op in sorted(rows, key=str.lower):
        lines += ["", f"## {'Every op' if op == '*' else op}"]
        lines += table(["toolkit", "kind", "limit", "targets", "passes with", "probe"], rows[op])
    lines += [
        "# Probes",
        "",
        "Each line is one model: the case, its parameters, and per target what became of it. `C` and `N` behind an op:",
        "on the CPU or the NPU; `/i8`: in int8; `fused`, `folded`: no row of its own.",
    ]
    lines += table(["op", "case", "parameters", "result"], _probes())
    return "\n".join(lines)


def _limits(rules: MeasuredRules) -> Iterable[tuple[str, str, MeasuredLimit]]:
    for op, rule in rules.ops.items():
        yield from (("NPU", op, limit) for limit in rule.limits)
    for op, limits in rules.overflow.items():
        yield from (("overflow", op, limit) for limit in limits)
    for refused in (rules.refused_nodes, rules.refused_rows):
        for op, limits in refused.items():
            yield from (("build", op, limit) for limit in limits)


def _condition(limit: MeasuredLimit) -> str:
    require = limit.allowed or (f"`{limit.require.source}`" if limit.require else limit.form.replace("_", " "))
    return f"{require}, where `{limit.when.source}`" if limit.when else require


def _probes() -> Iterable[list[str]]:
    for line in _PROBES.read_text("utf-8").splitlines():
        yield [part.strip().replace("*", r"\*") for part in line.split(" | ")]
