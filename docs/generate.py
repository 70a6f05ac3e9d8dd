"""Writes the tables under docs/generated from the project's own data.

    python docs/generate.py            writes them
    python docs/generate.py --check    exits with 1 where a file is not what would be written

A page is a module in docs/pages with a function ``page() -> str``, a folder of pages one with ``pages() -> dict`` of
file names and texts; its line in ``PAGES`` is all it needs beside it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "generated"
PAGES: dict[str, str] = {
    # file under docs/generated -> module in docs/pages
    "backends.md": "pages.backends",
    "numerics.md": "pages.numerics",
    "operators.md": "pages.operators",
    "ops.md": "pages.ops",
    "probes.md": "pages.probes",
    "socs/": "pages.socs",
}


def main(arguments: list[str]) -> int:
    """Writes or checks every page; returns the exit status."""
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for name, page in _pages().items():
        path = FOLDER / name
        text = page.rstrip() + "\n"
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if arguments and stale:
        print(f"out of date, run python docs/generate.py: {', '.join(stale)}", file=sys.stderr)
        return 1
    return 0


def _pages() -> dict[str, str]:
    """Every file under docs/generated with its text."""
    result = {}
    for name, module in PAGES.items():
        found = import_module(module)
        if name.endswith("/"):
            result |= {f"{name}{file}": text for file, text in found.pages().items()}
        else:
            result[name] = found.page()
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
