"""What all results have in common: JSON values, a JSON document, a page, a readable text."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from html import escape
from typing import Any


class Result(ABC):
    """A result that is shown as text, JSON or HTML."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def to_html(self) -> str:
        """The result as a self-contained page."""

    def to_json(self, indent: int | None = None) -> str:
        """The result as a JSON document; the same result gives the same text, byte for byte."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for a notebook cell."""
        return f'<iframe srcdoc="{escape(self.to_html())}" style="width:100%;height:760px;border:0"></iframe>'
