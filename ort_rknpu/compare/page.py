"""The HTML pages of ``compare`` and ``diff``: the network, and the error along it as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ort_rknpu.compare.comparison import Comparison, TensorComparison
from ort_rknpu.present.html import render
from ort_rknpu.present.page import ClauseTable, cut, network, target_data
from ort_rknpu.report import NodeResult

if TYPE_CHECKING:
    from ort_rknpu.compare.diff import Difference


def comparison_page(comparison: Comparison) -> str:
    """NPU numerics against float32: the check's page with the noise of every measured tensor."""
    nodes = comparison.target.nodes
    clauses = ClauseTable()
    target = target_data(comparison.target, comparison.sentence(), clauses)
    producer = _producers(nodes)
    facts = _no_facts(nodes)
    for tensor in comparison.tensors:
        index = producer.get(tensor.name)
        if index is not None:
            facts[index].append(f"{cut(tensor.name)}: {_words(tensor)}")
    first = next((p.drift.tensor for p in comparison.partitions if p.drift is not None), None)
    target |= {"facts": facts, "marked": producer.get(first) if first is not None else None}
    worst = {found.tensor for found in comparison.contributors}
    plotted = [
        _point(tensor.name, producer, _noise(tensor), tensor.metrics.overflows, tensor.name in worst, _words(tensor))
        for tensor in comparison.tensors
    ]
    page = {
        "nodes": network(nodes, comparison.values),
        "clauses": clauses.rows,
        "targets": [target],
        "drift": {
            "title": "Drift along the network",
            "label": "measured tensors in execution order; noise relative to the signal, overflow as a triangle",
            "tensors": plotted,
        },
    }
    return render(comparison.model, "NPU numerics against float32", page)


def difference_page(difference: Difference) -> str:
    """A model against the toolkit's dump of it: the dump's network, the first differing node marked."""
    nodes = difference.nodes
    producer = _producers(nodes)
    first = difference.first
    begins = {found.fused_tensor for found in difference.tensors}
    facts = _no_facts(nodes)
    by_name = {node.name: index for index, node in enumerate(nodes)}
    for found in difference.tensors:
        index = by_name.get(found.node, producer.get(found.node))
        if index is not None:
            facts[index].append(
                f"{cut(found.tensor)} differs by up to {found.max_abs:.3g}: {found.actual:.6g} instead of "
                f"{found.expected:.6g}, computed by {cut(', '.join(found.suspects))}"
            )
    target = {
        "label": "dump",
        "sentence": cut(str(difference).splitlines()[0]),
        "state": "different" if difference.differs else "same",
        "build": [],
        "verdicts": [node.verdict for node in nodes],
        "partitions": [None] * len(nodes),
        "clauses": [None] * len(nodes),
        "compiled": [None] * len(nodes),
        "transitions": None,
        "facts": facts,
        "marked": None if first is None else by_name.get(first.node, producer.get(first.node)),
    }
    plotted = [
        _point(name, producer, error, int(math.isinf(error)), name in begins, f"{error:.3g} of 1+|y|")
        for name, error in difference.errors.items()
    ]
    page = {
        "nodes": network(nodes, difference.values),
        "clauses": [],
        "targets": [target],
        "drift": {
            "title": "Difference along the network",
            "label": "compared tensors in the dump's order; largest difference relative to 1+|y|",
            "tensors": plotted,
        },
    }
    return render("Source model against its dump", "Does the dump still mean what the model means", page)


def _producers(nodes: Sequence[NodeResult]) -> dict[str, int]:
    return {name: index for index, node in enumerate(nodes) for name in node.outputs}


def _no_facts(nodes: Iterable[NodeResult]) -> list[list[str]]:
    return [[] for _ in nodes]


def _point(
    name: str, producer: Mapping[str, int], error: float, overflow: int, worst: bool, text: str
) -> dict[str, Any]:
    return {
        "name": cut(name),
        "node": producer.get(name),
        "error": error if math.isfinite(error) else None,
        "overflow": overflow,
        "worst": worst,
        "text": text,
    }


def _noise(tensor: TensorComparison) -> float:
    """Root-mean-square noise over signal; 0 where the tensors are equal."""
    ratio = tensor.metrics.sqnr_db
    return math.inf if math.isnan(ratio) else 10 ** (-ratio / 20)


def _words(tensor: TensorComparison) -> str:
    found = tensor.metrics
    overflow = f", {found.overflows} overflow" if found.overflows else ""
    ratio = "equal" if found.sqnr_db == math.inf else f"SQNR {found.sqnr_db:.1f} dB"
    return f"{ratio}, cosine {found.cosine:.6f}, at most {found.max_abs:.3g} apart{overflow}"
