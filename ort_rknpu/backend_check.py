"""The check against a back end that is no SoC: one verdict per node, no compiler, no partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ort_rknpu.graph import Graph, Op
from ort_rknpu.model import Model
from ort_rknpu.report import BACKEND_VERDICTS, SOC_VERDICTS, BuildResult, NodeResult, TargetResult
from ort_rknpu.rules.backends import BackendPlacement, place
from ort_rknpu.targets.backends.registry import BackendTarget

_WORST_FIRST = ("unsupported", "not covered", "supported")


def check_backend(model: Model, target: BackendTarget) -> TargetResult:
    """What ``target`` says of every node of the file.

    ``summary`` counts the verdicts of the SoCs too (all but ``unsupported`` stay 0), so that all targets of a report
    have the same keys. A node that stands for several ops, such as a call of a local function, gets the worst verdict.
    """
    found: list[list[BackendPlacement]] = [[] for _ in model.nodes]
    for op in _walk(model.graph):
        placement = place(op, target)
        for origin in op.origins:
            found[origin].append(placement)
    nodes = tuple(
        NodeResult(
            node.name,
            node.op_type,
            node.domain,
            node.outputs,
            min((p.verdict for p in placements), key=_WORST_FIRST.index, default="not covered"),
            (),
            None,
            tuple(dict.fromkeys(clause for p in placements for clause in p.clauses)),
        )
        for node, placements in zip(model.nodes, found)
    )
    counts = Counter(node.verdict for node in nodes)
    summary = {verdict.replace(" ", "_"): counts[verdict] for verdict in (*SOC_VERDICTS, *BACKEND_VERDICTS)}
    return TargetResult(
        soc=target.name,
        precision=None,
        toolkit=None,
        rules=None,
        build=BuildResult(),
        summary={"nodes": len(nodes), **summary, "partitions": 0, "transitions": 0, "boundary_bytes": 0},
        nodes=nodes,
        compiled=(),
        partitions=(),
    )


def _walk(graph: Graph) -> Iterator[Op]:
    for op in graph.ops:
        yield op
        for body in op.subgraphs.values():
            yield from _walk(body)
