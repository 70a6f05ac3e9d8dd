"""The score against the vendor's compiler does not fall: thresholds just below what was measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import placement  # noqa: E402

from ort_rknpu.vendor.score import RunScore, tally  # noqa: E402

RECORDINGS = ROOT / "tests" / "data" / "recordings"


def scores(toolkit: str, corpus: str) -> list[RunScore]:
    """Scores of every model of a corpus; a folder of recordings of its own may stand before its name."""
    folder, _, name = corpus.rpartition("/")
    recorded = placement.read_corpus(RECORDINGS / folder, toolkit, name)
    models = placement.read_models(RECORDINGS / folder / "models", name)
    jobs = ((data, recorded[name]) for name, data in models if recorded.get(name))
    return [score for job in jobs for score in placement.score_model("compiled", job)]


@pytest.mark.parametrize(
    ("toolkit", "corpus", "f1", "every_node", "rows", "build"),
    [
        ("2.3.2", "P", 0.998, 0.998, 0.997, 0.998),
        ("2.3.2", "T", 0.999, 0.999, 0.998, 0.998),
        ("2.3.2", "B", 0.975, 0.93, 0.97, 0.997),
        ("2.3.2", "general/P", 0.98, 0.988, 0.971, 0.993),
        ("2.3.2", "general/T", 0.948, 0.952, 0.935, 0.999),
        ("2.5.0", "P", 0.993, 0.996, 0.994, 0.998),
        ("2.5.0", "T", 0.988, 0.99, 0.997, 0.999),
        ("2.5.0", "B", 0.97, 0.94, 0.95, 0.997),
    ],
)
def test_the_score_does_not_fall(
    toolkit: str, corpus: str, f1: float, every_node: float, rows: float, build: float
) -> None:
    total = tally(scores(toolkit, corpus))
    assert total.runs > 300
    assert total.f1 >= f1
    assert total.every_node_share >= every_node
    assert total.rows_share >= rows
    assert total.build_share >= build
