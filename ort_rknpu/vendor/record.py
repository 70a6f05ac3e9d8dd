"""Records what the toolkit does with a model, in the format of :mod:`ort_rknpu.vendor.records`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from ort_rknpu.targets.socs import Target
from ort_rknpu.vendor.mapping import map_nodes
from ort_rknpu.vendor.records import Record
from ort_rknpu.vendor.toolkit import Outcome, Toolkit


def record_of(name: str, graph: onnx.GraphProto, target: Target, toolkit: str, outcome: Outcome) -> Record:
    """The record of one build."""
    record = Record(name, target.soc.name, target.precision, toolkit, outcome.ok)
    if not outcome.ok:
        return replace(record, stage=outcome.stage, error=outcome.error)
    log = outcome.log
    nodes = map_nodes(graph, log.layers, log.rewrites)
    return replace(record, layers=log.layers, rewrites=log.rewrites, nodes=nodes)


def record_model(
    toolkit: Toolkit,
    path: str | Path,
    targets: Iterable[Target],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> list[Record]:
    """Builds one model file for every target, in order.

    Raises:
        ToolkitError: the interpreter died, or an input has no fixed shape and ``shapes`` does not give it.
    """
    graph = onnx.load(str(path), load_external_data=False).graph
    name = Path(path).stem
    outcomes = ((target, toolkit.build(path, target, shapes)) for target in targets)
    return [record_of(name, graph, target, toolkit.version, outcome) for target, outcome in outcomes]
