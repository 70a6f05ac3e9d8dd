"""Numbered conditions of a table, and what would pass: the nearest value that satisfies a violated one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ort_rknpu.rules.finding import Finding
from ort_rknpu.targets.expressions import Expression

_REACH = 64


def condition_findings(
    conditions: Sequence[Expression],
    values: Mapping[str, Any],
    required: str,
    label: str = "",
    variables: Sequence[str] = (),
) -> Iterator[Finding]:
    """Every condition that is violated or cannot be decided; its number, behind ``label``, goes into the clause id.

    ``variables`` are those that a hint may change, all where empty.
    """
    for number, condition in enumerate(conditions, 1):
        holds = condition(values)
        if not holds:
            actual, allowed = condition.describe(values)
            yield Finding(
                actual,
                allowed,
                nearest(condition, values, variables),
                unknown=holds is None,
                suffix=f"{label}_{number}",
                text=f"{required} requires {condition.source}",
            )


def nearest(condition: Expression, values: Mapping[str, Any], variables: Sequence[str] = ()) -> str:
    """``"h1 = 32 would pass"`` for every one of ``variables`` (default: all) that alone can mend it, else ""."""
    found = []
    for name in variables or condition.names:
        value = values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        better = _nearest(condition, values, name, value)
        if better is not None:
            found.append(f"{name} = {better}")
    return " or ".join(found) + " would pass" if found else ""


def _nearest(condition: Expression, values: Mapping[str, Any], name: str, value: int) -> int | None:
    trial = dict(values)

    def passes(candidate: int) -> bool:
        trial[name] = candidate
        return condition(trial) is True

    for distance in range(1, _REACH):
        for candidate in (value - distance, value + distance):
            if (candidate > 0 or (candidate == 0 and name.startswith("pad"))) and passes(candidate):
                return candidate
    if value <= _REACH or not passes(1):
        return None
    low, high = 1, value
    while high - low > 1:
        middle = (low + high) // 2
        if passes(middle):
            low = middle
        else:
            high = middle
    return low
