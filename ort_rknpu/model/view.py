"""The loaded model: its graph view and the list of every node of the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from ort_rknpu.collector import collector_paused
from ort_rknpu.graph import Dim, Graph
from ort_rknpu.model.build import NodeInfo, build_graph
from ort_rknpu.model.read import read_model
from ort_rknpu.model.resolve import resolve_graph
from ort_rknpu.model.shapes import apply_shapes, parse_shapes

__all__ = ["Model", "NodeInfo"]


@dataclass(frozen=True)
class Model:
    """What every later stage starts from.

    Attributes:
        graph: the main graph. Every node of the file is an op of it, model-local functions are inlined, bodies of
            control flow are in ``Op.subgraphs``. Ops whose inputs are all constant keep their place; their outputs
            carry ``constant`` and, up to a size limit, ``const``.
        nodes: every node of the file in file order. A node of a subgraph or of a function follows the node that
            holds or calls it, under a path-like name. ``Op.origins`` are indices into this tuple; an op from a
            function body names the calling node too.
        opset: version of the standard operator set.
        ir_version: of the file.
        name: the file's name, or the graph's name where the model was no file.
        path: the file, or None.
        proto: the model as read, external data not loaded.
    """

    graph: Graph
    nodes: tuple[NodeInfo, ...]
    opset: int
    ir_version: int
    name: str
    path: str | None
    proto: onnx.ModelProto = field(repr=False)

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | bytes | onnx.ModelProto,
        shapes: Mapping[str, Sequence[Dim]] | Sequence[str] | None = None,
    ) -> Model:
        """Reads a model and resolves its graph.

        Args:
            source: a path, the file's bytes, or a ModelProto (left unchanged). External data may be absent.
            shapes: shapes of graph inputs that replace what the file says, ``{"x": (1, 3, 640, 640)}`` or
                ``["x=1,3,640,640"]``. A symbolic dimension set on one input holds for all.

        Raises:
            ModelError: the file cannot be read, is no ONNX model, or its graph is inconsistent.
            OptionError: ``shapes`` is malformed, names no graph input, or has another rank than it.
        """
        proto, path = read_model(source)
        overrides = apply_shapes(proto.graph, parse_shapes(shapes))
        base = os.path.dirname(os.path.abspath(path)) if path is not None else None
        with collector_paused():
            built = build_graph(proto, overrides, base)
            resolve_graph(built)
        return cls(
            graph=built.graph,
            nodes=tuple(built.nodes),
            opset=built.opsets.get("", 0),
            ir_version=proto.ir_version,
            name=os.path.basename(path) if path is not None else _text(proto.graph.name),
            path=path,
            proto=proto,
        )

    def node_index(self, name: str) -> int | None:
        """Index of the node with this name, or else of the node that writes the tensor of this name."""
        for node in self.nodes:
            if node.name == name:
                return node.index
        for node in self.nodes:
            if name in node.outputs:
                return node.index
        return None


def _text(value: str | bytes) -> str:
    """Protobuf hands out bytes for text that is not UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
