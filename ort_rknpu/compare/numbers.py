"""Numbers of comparisons as JSON."""

from __future__ import annotations

import math
from typing import Any


def json_value(value: Any) -> Any:
    """``value`` with infinities and NaN, for which JSON has no numbers, as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value
