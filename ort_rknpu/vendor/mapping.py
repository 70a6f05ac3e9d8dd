"""Maps the rows of the vendor's layer table back to the nodes of the ONNX file.

The optimiser's log names the nodes that each rewrite took away and put in their place. Following those lines from the
file's own nodes gives, for every row, the nodes it stands for. The compiler then fuses some rows into a neighbour
without saying so (activations and additions into a Conv): a node that was never rewritten away and has no row is taken
to be part of the nearest row it reads from.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

import onnx

from ort_rknpu.vendor.records import Layer, Rewrite

_SUFFIX = re.compile(r"[#_][^#_]*$")


def node_names(graph: onnx.GraphProto) -> list[str]:
    """The name of every node as the toolkit prints it: its own, else its op type and index in the file."""
    return [node.name or f"{node.op_type}_{index}" for index, node in enumerate(graph.node)]


def trace(names: Iterable[str], rewrites: Iterable[Rewrite]) -> dict[str, set[str]]:
    """Name of every node that is left after the rewrites -> names of the file's nodes it came from.

    A rule that swaps nodes leaves each with its own origins; what any other rule adds stands for all that it removed.
    """
    origins: dict[str, set[str]] = {name: {name} for name in names}
    for rewrite in rewrites:
        before = {name: origins.pop(name, set()) for name in rewrite.removed}
        everything = set().union(*before.values()) if before else set()
        lost = set().union(*(found for name, found in before.items() if name not in rewrite.added), set())
        swap = rewrite.rule.startswith("swap_")
        for name in rewrite.added:
            if not swap:
                origins[name] = set(everything)
            elif name in before:
                origins[name] = before[name]
            else:
                origins[name] = origins.get(name, set()) | lost
    return origins


def _origins_of_row(name: str, origins: Mapping[str, set[str]]) -> set[str]:
    """The origins of a row; the compiler names the parts of a node it splits after it, with a suffix."""
    while name not in origins:
        name, cut = _SUFFIX.subn("", name)
        if not cut:
            return set()
    return origins[name]


class _Hosts:
    """Finds the row that a node without one was fused into."""

    def __init__(self, graph: onnx.GraphProto, names: Sequence[str], rows: Mapping[str, list[Layer]]) -> None:
        self.nodes = dict(zip(names, graph.node, strict=True))
        self.producer = {value: name for name, node in self.nodes.items() for value in node.output if value}
        self.rows = rows

    def find(self, name: str) -> list[Layer]:
        """The rows of an ancestor that name the node's own op type beside another, else all of the nearest with any."""
        op_type = self.nodes[name].op_type
        nearest: list[Layer] = []
        seen, queue = {name}, deque([name])
        while queue:
            for value in self.nodes[queue.popleft()].input:
                source = self.producer.get(value)
                if source is None or source in seen:
                    continue
                seen.add(source)
                found = self.rows.get(source)
                if not found:
                    queue.append(source)
                    continue
                fused = [row for row in found if row.op != op_type and op_type in row.op]
                if fused:
                    return fused
                nearest = nearest or found
        return nearest


def map_nodes(graph: onnx.GraphProto, layers: Iterable[Layer], rewrites: Iterable[Rewrite]) -> dict[str, str]:
    """What became of every node of the graph: ``npu``, ``cpu``, ``split`` (rows on both) or ``folded`` (no row)."""
    names = node_names(graph)
    origins = trace(names, rewrites)
    rows: dict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        for name in _origins_of_row(layer.name, origins):
            rows[name].append(layer)
    alive = set().union(*origins.values()) if origins else set()
    hosts = _Hosts(graph, names, rows)
    result = {}
    for name in names:
        found = rows.get(name) or (hosts.find(name) if name in alive else [])
        devices = {layer.device for layer in found}
        result[name] = "folded" if not devices else "split" if len(devices) > 1 else devices.pop()
    return result
