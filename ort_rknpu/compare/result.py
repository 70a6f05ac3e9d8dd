"""What results of comparisons have in common: JSON, a page, a readable text."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any

from ort_rknpu.present.html import embed


def json_value(value: Any) -> Any:
    """``value`` with infinities and NaN, for which JSON has no numbers, as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value


class Result(ABC):
    """A result that is shown as text, JSON or HTML."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""

    @abstractmethod
    def __str__(self) -> str: ...

    def to_json(self, indent: int | None = None) -> str:
        """The result as a JSON document; the same result gives the same text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @abstractmethod
    def to_html(self) -> str:
        """The result as a page of its own."""

    def _repr_html_(self) -> str:
        return embed(self.to_html())
