"""The generated tables are what the project's data gives today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def _generate(*arguments):
    return subprocess.run(
        [sys.executable, DOCS / "generate.py", *arguments], capture_output=True, text=True, cwd=DOCS.parent, check=False
    )


def test_generated_tables_are_up_to_date():
    done = _generate("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_arguments_are_refused():
    assert _generate("--write").returncode == 2


@pytest.mark.parametrize("cell", ["unsupported: rank, sizes", "not covered", "supported"])
def test_backends_page_has_verdicts(cell):
    assert f"| {cell} |" in (DOCS / "generated" / "backends.md").read_text("utf-8")


@pytest.mark.parametrize("case", ["Conv stride", "Add big_bc", "Slice step"])
def test_probes_page_has_the_cases_that_clauses_name(case):
    op, name = case.split(" ")
    page = (DOCS / "generated" / "probes.md").read_text("utf-8")
    assert f"| {case} |" in page
    assert f"| {op} | {name} |" in page
