"""The model itself with each node's device, partition and reasons as metadata, for Netron and other viewers.

Keys are ``rknpu.<target>.device``, ``.partition``, ``.compiled_as`` and ``.reason``; nodes of model-local functions
are told at the node that calls them. Graph, weights and names stay as they are, so the file loads and runs unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo

from custom_ops.loading import external_tensors, save_model
from ort_rknpu.model import Model
from ort_rknpu.report import NodeResult, Report


def annotate(model: Model, report: Report) -> onnx.ModelProto:
    """A copy of the model's proto with the metadata of ``report``.

    Args:
        model: the model that ``report`` was made of.
        report: at least one target; each writes keys of its own.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model.proto)
    twins = {id(old): new for old, new in zip(_nodes(model.proto.graph), _nodes(result.graph))}
    for info in model.nodes:
        node = twins.get(id(info.proto))
        if node is None:
            continue
        for target in report.targets:
            prefix = f"rknpu.{target.soc}"
            for key, value in _metadata(target.nodes[info.index]).items():
                node.metadata_props.add(key=f"{prefix}.{key}", value=value)
    return result


def save_annotated(model: Model, report: Report, path: Path) -> None:
    """Writes :func:`annotate`'s model; external data, where it is there, stays reachable beside the new file.

    Raises:
        ModelError: a file cannot be written.
    """
    proto = annotate(model, report)
    folder = None if model.path is None else Path(model.path).resolve().parent
    if folder is not None:
        locations = {ExternalDataInfo(tensor).location for tensor in external_tensors(proto)}
        if not all((folder / location).is_file() for location in locations):
            folder = None
    save_model(proto, path, folder)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
            for body in attribute.graphs:
                yield from _nodes(body)


def _metadata(node: NodeResult) -> dict[str, str]:
    parts = {
        "device": node.verdict,
        "partition": "" if node.partition is None else str(node.partition).strip("()"),
        "compiled_as": ", ".join(node.compiled_as),
        "reason": "; ".join(f"{c.text} (has {c.actual}, allowed {c.allowed}; {c.source})" for c in node.clauses),
    }
    return {key: value for key, value in parts.items() if value}
