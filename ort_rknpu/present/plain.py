"""Plain text as HTML."""

from __future__ import annotations

from html import escape


def text_fragment(text: str) -> str:
    """Plain text for a notebook cell."""
    return f"<pre>{escape(text)}</pre>"


def text_page(title: str, text: str) -> str:
    """Plain text as a page of its own."""
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n{text_fragment(text)}'
