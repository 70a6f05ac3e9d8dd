"""What the HTML page shows of a report, as JSON-ready data; ``page/src`` reads exactly these fields.

Clauses that several nodes or targets share are stored once. Texts are cut at a length no screen shows, so that a
model with absurd names makes no absurd page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ort_rknpu.report import NodeResult, Report, TargetResult
from ort_rknpu.rules.clause import Clause

_MOST_LETTERS = 400


def report_data(report: Report, sentences: Sequence[str]) -> dict[str, Any]:
    """The page of a check: one tab per target.

    Args:
        report: at least one target.
        sentences: one summary per target, as a person would quote it.
    """
    clauses = ClauseTable()
    nodes = report.targets[0].nodes if report.targets else ()
    targets = [target_data(target, sentence, clauses) for target, sentence in zip(report.targets, sentences)]
    return {"nodes": network(nodes, report.values), "targets": targets, "clauses": clauses.rows}


class ClauseTable:
    """A table of clauses without repetition; a node refers to rows of it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self._index: dict[Clause, int] = {}

    def add(self, clauses: Iterable[Clause]) -> list[int]:
        """The row of each clause."""
        result = []
        for clause in clauses:
            if clause not in self._index:
                self._index[clause] = len(self.rows)
                self.rows.append({key: cut(text) for key, text in clause.to_dict().items()})
            result.append(self._index[clause])
        return result


def target_data(target: TargetResult, sentence: str, clauses: ClauseTable) -> dict[str, Any]:
    """One tab: the verdict, partition, reasons and compiled rows of each node."""
    return {
        "label": target.label,
        "sentence": cut(sentence),
        "state": "ok" if target.build.ok else "refused",
        "build": [{key: cut(text) for key, text in reason.to_dict().items()} for reason in target.build.reasons],
        "verdicts": [node.verdict for node in target.nodes],
        "partitions": [list(p) if isinstance(p := node.partition, tuple) else p for node in target.nodes],
        "clauses": [clauses.add(node.clauses) or None for node in target.nodes],
        "compiled": [list(node.compiled_as) or None for node in target.nodes],
        "transitions": target.summary.get("transitions"),
    }


def network(nodes: Sequence[NodeResult], values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Nodes with the indices of the nodes they read, and their tensors as ``name dtype[shape]``."""
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs}
    return [
        {
            "name": cut(node.name),
            "op": cut(node.op_type),
            "domain": cut(node.domain),
            "inputs": sorted({producer[name] for name in node.inputs if producer.get(name, index) != index}),
            "reads": _tensors(node.inputs, values),
            "writes": _tensors(node.outputs, values),
        }
        for index, node in enumerate(nodes)
    ]


def _tensors(names: Iterable[str], values: Mapping[str, str]) -> str:
    return "; ".join(cut(f"{name} {values.get(name, '')}".strip()) for name in names if name)


def cut(text: str) -> str:
    """``text``, shortened in the middle where it is absurdly long."""
    if len(text) <= _MOST_LETTERS:
        return text
    half = _MOST_LETTERS // 2
    return f"{text[:half]}…{text[-half:]}"
