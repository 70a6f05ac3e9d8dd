"""The tutorial: every command runs and prints what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import tutorial  # noqa: E402

_DECIMAL = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def pages() -> tuple[list[str], list[str]]:
    written = tutorial.PAGE.read_text("utf-8")
    return written.splitlines(), tutorial.run(written).splitlines()


def test_commands_print_what_the_page_says(pages: tuple[list[str], list[str]]) -> None:
    written, printed = (["#".join(_DECIMAL.split(line)) for line in page] for page in pages)
    assert printed == written


def test_measured_numbers_are_those_of_the_page(pages: tuple[list[str], list[str]]) -> None:
    written, printed = ([float(n) for line in page for n in _DECIMAL.findall(line)] for page in pages)
    assert printed == pytest.approx(written, rel=0.1)
