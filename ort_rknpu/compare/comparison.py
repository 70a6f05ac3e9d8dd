"""What ``compare`` answers: per partition and boundary tensor how far NPU numerics are from float32, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ort_rknpu.compare.metrics import Metrics
from ort_rknpu.compare.numbers import json_value
from ort_rknpu.present.text import to_text
from ort_rknpu.report import TargetResult
from ort_rknpu.result import Result


@dataclass(frozen=True)
class TensorComparison:
    """One tensor with NPU numerics against float32, over all batches."""

    name: str
    metrics: Metrics

    def to_dict(self) -> dict[str, Any]:
        """The name and the metrics."""
        return {"name": self.name, **self.metrics.to_dict()}


@dataclass(frozen=True)
class Drift:
    """Where a partition's result begins to drift.

    Attributes:
        node: the first node whose result falls below ``limit_db``.
        tensor: that result.
        sqnr_db: its signal-to-noise ratio.
        inputs_db: the lowest ratio among what the node reads; inf where it reads only exact tensors.
        limit_db: what counts as drift.
    """

    node: str
    tensor: str
    sqnr_db: float
    inputs_db: float
    limit_db: float


@dataclass(frozen=True)
class Contributor:
    """A compiled op that adds much noise.

    Attributes:
        node: the node that writes its result.
        op: the compiled op's name.
        partition: where it runs.
        tensor: its result.
        added: noise it adds, as the growth of root-mean-square noise over signal from its worst input to its result.
        sqnr_db: the ratio of its result.
        overflows: values of its result that overflow.
    """

    node: str
    op: str
    partition: int | None
    tensor: str
    added: float
    sqnr_db: float
    overflows: int


@dataclass(frozen=True)
class PartitionComparison:
    """One partition.

    Attributes:
        id, device: as in ``check``.
        nodes: number of the model's nodes in it.
        macs: multiply-accumulates, None where a shape is not known.
        float32_ms, emulated_ms: time of its nodes in ONNX Runtime on this machine, in float32 and with NPU numerics.
        inputs, outputs: the tensors at its boundary.
        drift: where its result begins to drift, if it does while its inputs do not.
    """

    id: int
    device: str
    nodes: int
    macs: int | None
    float32_ms: float
    emulated_ms: float
    inputs: tuple[TensorComparison, ...]
    outputs: tuple[TensorComparison, ...]
    drift: Drift | None

    def to_dict(self) -> dict[str, Any]:
        """The partition as JSON values."""
        return {
            **json_value(
                {key: value for key, value in vars(self).items() if key not in ("inputs", "outputs", "drift")}
            ),
            "inputs": [tensor.to_dict() for tensor in self.inputs],
            "outputs": [tensor.to_dict() for tensor in self.outputs],
            "drift": None if self.drift is None else json_value(asdict(self.drift)),
        }


@dataclass(frozen=True)
class Comparison(Result):
    """NPU numerics against float32 on the same inputs.

    Attributes:
        model: its name.
        soc, precision, toolkit, rules: the target.
        batches: number of inputs that were run.
        outputs: the model's outputs.
        partitions: in execution order.
        contributors: the ops that add most noise, largest first.
        tensors: every result that was measured, in execution order.
        target: the check's answer for the target; not part of the JSON.
        values: dtype and shape of tensors, for the page.
    """

    model: str
    soc: str
    precision: str
    toolkit: str
    rules: str
    batches: int
    outputs: tuple[TensorComparison, ...]
    partitions: tuple[PartitionComparison, ...]
    contributors: tuple[Contributor, ...]
    tensors: tuple[TensorComparison, ...]
    target: TargetResult = field(repr=False, compare=False)
    values: Mapping[str, str] = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values; infinities and NaN are strings."""
        own = ("model", "soc", "precision", "toolkit", "rules", "batches")
        return {
            "schema": 1,
            **{key: getattr(self, key) for key in own},
            "outputs": [tensor.to_dict() for tensor in self.outputs],
            "partitions": [partition.to_dict() for partition in self.partitions],
            "contributors": [json_value(asdict(found)) for found in self.contributors],
            "tensors": [tensor.to_dict() for tensor in self.tensors],
        }

    def __str__(self) -> str:
        return to_text(self.view()).rstrip("\n")

    def to_html(self) -> str:
        """The network with the drift along it, as a page of its own."""
        from ort_rknpu.compare.page import comparison_page

        return comparison_page(self)

    def view(self) -> RenderableType:
        """The comparison for a rich console."""
        parts: list[RenderableType] = [Text(self.sentence())]
        parts.append(_tensors("outputs", self.outputs))
        parts.append(self._devices())
        parts.append(self._partitions())
        boundaries = [t for p in self.partitions for t in p.outputs if t not in self.outputs]
        if boundaries:
            parts.append(_tensors("tensors between partitions", tuple(boundaries)))
        drifts = [(p, p.drift) for p in self.partitions if p.drift is not None]
        parts.extend(
            Text(
                f"partition {partition.id} ({partition.device}) drifts from node {drift.node!r} on: {drift.tensor} has "
                f"{_decibel(drift.sqnr_db)}, what it is computed from {_decibel(drift.inputs_db)}"
            )
            for partition, drift in drifts
        )
        if self.contributors:
            parts.append(self._contributors())
        return Group(*parts)

    def sentence(self) -> str:
        """One line that a person can quote."""
        worst = min(self.outputs, key=lambda tensor: tensor.metrics.sqnr_db, default=None)
        ending = "" if worst is None else f"; worst output {worst.name} with {_decibel(worst.metrics.sqnr_db)}"
        noun = "batch" if self.batches == 1 else "batches"
        return f"{self.model} on {self.soc} {self.precision} against float32, {self.batches} {noun}{ending}"

    def _devices(self) -> Table:
        table = Table(
            "device", "partitions", "nodes", "MACs", "float32 ms", "emulated ms", "worst output", title="NPU and CPU"
        )
        for device in ("npu", "cpu"):
            found = [partition for partition in self.partitions if partition.device == device]
            if found:
                ratios = [tensor.metrics.sqnr_db for partition in found for tensor in partition.outputs]
                table.add_row(
                    device, str(len(found)), str(sum(p.nodes for p in found)), *_cost(found, min(ratios, default=None))
                )
        return table

    def _partitions(self) -> Table:
        table = Table("id", "device", "nodes", "MACs", "float32 ms", "emulated ms", "worst output", title="partitions")
        for found in self.partitions:
            worst = min((tensor.metrics.sqnr_db for tensor in found.outputs), default=None)
            table.add_row(str(found.id), found.device, str(found.nodes), *_cost([found], worst))
        return table

    def _contributors(self) -> Table:
        table = Table("node", "compiled op", "partition", "adds", "then", "overflows", title="largest contributors")
        for found in self.contributors:
            partition = "" if found.partition is None else str(found.partition)
            table.add_row(
                found.node, found.op, partition, f"{found.added:.2e}", _decibel(found.sqnr_db), str(found.overflows)
            )
        return table


def _cost(partitions: list[PartitionComparison], worst: float | None) -> tuple[str, ...]:
    macs = [partition.macs for partition in partitions]
    total = "?" if None in macs else f"{sum(count or 0 for count in macs):,}"
    times = (sum(getattr(p, name) for p in partitions) for name in ("float32_ms", "emulated_ms"))
    return (total, *(f"{time:.3f}" for time in times), "" if worst is None else _decibel(worst))


def _tensors(title: str, tensors: tuple[TensorComparison, ...]) -> Table:
    table = Table("tensor", "SQNR", "cosine", "max abs", "max rel", "overflows", "subnormals", title=title)
    for tensor in tensors:
        found = tensor.metrics
        table.add_row(
            tensor.name,
            _decibel(found.sqnr_db),
            f"{found.cosine:.6f}",
            f"{found.max_abs:.3g}",
            f"{found.max_rel:.3g}",
            str(found.overflows),
            str(found.subnormals),
        )
    return table


def _decibel(value: float) -> str:
    return "exact" if value == float("inf") else f"{value:.1f} dB"
