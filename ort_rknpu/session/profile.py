"""ONNX Runtime's profile with the partition of every node event."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_SUFFIXES = ("_kernel_time", "_fence_before", "_fence_after")


def node_events(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The events of a profile that time a node's kernel."""
    events = json.loads(Path(path).read_text("utf-8"))
    return [event for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]


def event_node(event: Mapping[str, Any]) -> str:
    """The name of the node an event is about."""
    name = str(event["name"])
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def label_profile(path: str | os.PathLike[str], labels: Mapping[str, str]) -> None:
    """Adds ``args.partition`` to every node event of a profile file, in place.

    Args:
        path: the file that ``end_profiling`` wrote.
        labels: node or tensor name -> partition, for example ``npu 0``.
    """
    events = json.loads(Path(path).read_text("utf-8"))
    nodes = [event for event in events if event.get("cat") == "Node"]
    for event, label in zip(nodes, find_labels([event_node(event) for event in nodes], labels)):
        if label is not None:
            event.setdefault("args", {})["partition"] = label
    Path(path).write_text(json.dumps(events), "utf-8")


def find_labels(names: Iterable[str], labels: Mapping[str, str]) -> list[str | None]:
    """The label of every node that ran.

    ONNX Runtime's optimiser names a node it makes after one it came from, with something appended, or gives it no
    telling name at all: such a node has the label of the one that ran before it.
    """
    result: list[str | None] = []
    for name in names:
        cut = name.removesuffix("_nchwc")
        while cut and cut not in labels:
            cut = cut.rpartition("/")[0]
        result.append(labels[cut] if cut else (result[-1] if result else None))
    return result
