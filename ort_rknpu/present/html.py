"""A result as one self-contained HTML page: no request leaves it, no text of the model becomes markup.

The page's script and style are built from ``page/`` into ``present/assets``. What the page shows stands in it as
JSON; a content security policy allows exactly the one script and the one style by their hashes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from ort_rknpu._version import __version__
from ort_rknpu.present.page import report_data
from ort_rknpu.present.text import summary_line
from ort_rknpu.report import Report

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_hash}'; \
style-src '{style_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{subtitle}</p></header>
<main></main>
<noscript>This report needs a browser that runs its script.</noscript>
<footer>ort-rknpu {version}</footer>
<script id="data" type="application/json">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def report_page(report: Report) -> str:
    """A check as a page: the network, the verdicts, every reason."""
    sentences = [summary_line(report.model, target) for target in report.targets]
    return render(report.model or "model", "Where each node runs, and why", report_data(report, sentences))


def render(title: str, subtitle: str, page: dict[str, Any]) -> str:
    """The page for ``page`` (see :mod:`ort_rknpu.present.page` for its fields)."""
    script, style = _asset("report.js"), _asset("report.css")
    return _TEMPLATE.format(
        title=escape(title),
        subtitle=escape(subtitle),
        version=__version__,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_embed(page),
    )


@cache
def _asset(name: str) -> str:
    return files("ort_rknpu.present").joinpath("assets", name).read_text("utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embed(page: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: the characters that could end it are escaped."""
    text = json.dumps(page, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
