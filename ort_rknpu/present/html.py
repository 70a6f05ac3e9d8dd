"""Reports as HTML."""

from __future__ import annotations

from html import escape

from ort_rknpu.present.text import report_text
from ort_rknpu.report import Report


def report_fragment(report: Report) -> str:
    """The report for a notebook cell."""
    return f"<pre>{escape(report_text(report))}</pre>"


def report_page(report: Report) -> str:
    """The report as a page of its own."""
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(report.model)}</title>\n{report_fragment(report)}'
