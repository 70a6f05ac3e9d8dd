"""What would pass: the nearest value of each variable that satisfies a violated condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ort_rknpu.targets.expressions import Expression

_REACH = 64


def nearest(condition: Expression, values: Mapping[str, Any]) -> str:
    """``"h1 = 32 would pass"`` for every variable that alone can mend it, "" where none can."""
    found = []
    for name in condition.names:
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
            if candidate >= 0 and passes(candidate):
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
