"""``RknpuExecutionProvider``: what the NPU claims of a model, in the shape of ONNX Runtime's own interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from custom_ops.loading import Source
from ort_rknpu.errors import OptionError, PlacementError
from ort_rknpu.session.assignment import Assignment, assign
from ort_rknpu.session.numerics import npu_model, restrict
from ort_rknpu.session.options import PROVIDER, ProviderOptions


@dataclass(frozen=True)
class MetaDef:
    """The function that a claimed group of nodes stands for: its name, domain and boundary tensors."""

    name: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class IndexedSubGraph:
    """A group of nodes, by their indices in the model's main graph."""

    nodes: tuple[int, ...]
    meta_def: MetaDef


@dataclass(frozen=True)
class ComputeCapability:
    """A group of nodes the provider claims.

    Attributes:
        sub_graph: the nodes and the boundary of the group.
        partition: its number in ``check``'s list of partitions.
        reasons: name of each node -> the compiled ops it becomes, by which it is claimed; empty where it costs nothing.
    """

    sub_graph: IndexedSubGraph
    partition: int
    reasons: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class NodeComputeInfo:
    """A compiled group: call it with its inputs by name and it returns its outputs by name, with NPU numerics."""

    capability: ComputeCapability
    compute: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]


class RknpuExecutionProvider:
    """Claims and compiles what one chip's NPU would run.

    Attributes:
        options: the checked options.
    """

    name = PROVIDER

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Takes provider options as in ``providers=[("RknpuExecutionProvider", options)]``.

        Raises:
            OptionError: an unknown key or value, or ``soc`` is missing.
        """
        self.options = ProviderOptions.parse(options)

    def get_capability(self, graph: Source | Assignment) -> list[ComputeCapability]:
        """The groups of nodes that the NPU takes, in execution order: the NPU partitions of ``check``.

        Raises:
            ModelError: the model cannot be used.
            PlacementError: with ``fallback="error"``, where some node is not claimed.
        """
        assignment = self.assignment(graph)
        require_claimed(assignment, self.options)
        positions = {identity: position for position, identity in enumerate(assignment.index.nodes)}
        result = []
        for partition in assignment.result.partitions:
            if partition.device != "npu":
                continue
            members = [i for i, number in assignment.partition_of.items() if number == partition.id]
            if not members:
                continue
            inputs, outputs = assignment.boundary(partition.id)
            meta = MetaDef(f"{self.options.soc}_npu_{partition.id}", "rknpu", inputs, outputs)
            nodes = tuple(sorted(positions[identity] for identity in members))
            reasons = {assignment.nodes[i].name: assignment.nodes[i].compiled_as for i in members}
            result.append(ComputeCapability(IndexedSubGraph(nodes, meta), partition.id, reasons))
        return result

    def compile(self, graph: Source | Assignment, capabilities: Sequence[ComputeCapability]) -> list[NodeComputeInfo]:
        """A callable for every claimed group.

        Args:
            graph: the model the groups were claimed in; weights inside the file.
            capabilities: from :meth:`get_capability`.

        Raises:
            ModelError: ONNX Runtime refuses a group.
            OptionError: int8 numerics: groups are calibrated within the whole model, by ``InferenceSession``.
        """
        if self.options.precision == "int8" and self.options.numerics == "npu":
            raise OptionError("int8 groups are calibrated within the whole model: make an InferenceSession of it")
        assignment = self.assignment(graph)
        return [NodeComputeInfo(found, self._function(assignment, found.partition)) for found in capabilities]

    def assignment(self, graph: Source | Assignment) -> Assignment:
        """The check of ``graph`` for this provider's target."""
        return graph if isinstance(graph, Assignment) else assign(graph, self.options)

    def _function(
        self, assignment: Assignment, number: int
    ) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        import onnxruntime

        extracted = assignment.extract(number)
        built = npu_model(extracted, restrict(assignment.groups, extracted), assignment.values, self.options)
        session = onnxruntime.InferenceSession(
            built.model.SerializeToString(),
            providers=["CPUExecutionProvider"],
            disabled_optimizers=set(built.disabled_optimizers),
        )
        names = [output.name for output in session.get_outputs()]

        def compute(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return dict(zip(names, session.run(names, dict(inputs))))

        return compute


def require_claimed(assignment: Assignment, options: ProviderOptions) -> None:
    """Raises PlacementError with ``fallback="error"`` where the NPU does not take every node."""
    unclaimed = assignment.unclaimed
    if options.fallback == "error" and unclaimed:
        listed = ", ".join(unclaimed[:8]) + (f" and {len(unclaimed) - 8} more" if len(unclaimed) > 8 else "")
        raise PlacementError(
            f"{options.soc} {options.precision}: {len(unclaimed)} of {len(assignment.result.nodes)} nodes are not "
            f"claimed by the NPU: {listed}",
            unclaimed,
        )
