"""What a check answers: per target the verdict of every node, the compiled table, partitions and a summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ort_rknpu._version import __version__
from ort_rknpu.result import Result
from ort_rknpu.rules.clause import Clause

SCHEMA = 1
SOC_VERDICTS = ("npu", "cpu", "split", "folded", "unsupported", "unknown")
BACKEND_VERDICTS = ("supported", "unsupported", "not covered")


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One node of the file.

    Attributes:
        name, op_type, domain, outputs: as in the file; path-like name within subgraphs and functions.
        verdict: ``npu``, ``cpu``, ``split``, ``folded``, ``unsupported`` or ``unknown``; other targets answer
            ``supported``, ``unsupported`` or ``not covered``.
        compiled_as: op of every row that computes it.
        partition: id of the partition that holds it, ids where it is split, None where it costs nothing or runs
            nowhere.
        clauses: every violated clause, empty for a clean ``npu``.
        notes: what else was found, such as why a fusion did not happen.
        inputs: as in the file; not part of the JSON.
    """

    name: str
    op_type: str
    domain: str
    outputs: tuple[str, ...]
    verdict: str
    compiled_as: tuple[str, ...]
    partition: int | tuple[int, ...] | None
    clauses: tuple[Clause, ...]
    notes: tuple[Clause, ...] = ()
    inputs: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The node as in ``check --format json``."""
        result: dict[str, Any] = {
            "name": self.name,
            "op_type": self.op_type,
            "domain": self.domain,
            "outputs": list(self.outputs),
            "verdict": self.verdict,
            "compiled_as": list(self.compiled_as),
            "partition": list(self.partition) if isinstance(self.partition, tuple) else self.partition,
            "clauses": [clause.to_dict() for clause in self.clauses],
        }
        if self.notes:
            result["notes"] = [clause.to_dict() for clause in self.notes]
        return result


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """One row of the predicted layer table; ``inserted`` marks rows that no node asked for.

    ``inputs`` are the tensors it reads, by the compiler's names: those of the model where it reads them directly.
    """

    op: str
    device: str
    nodes: tuple[str, ...]
    inserted: bool
    inputs: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The row as in ``check --format json``."""
        return {"op": self.op, "device": self.device, "nodes": list(self.nodes), "inserted": self.inserted}


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """One partition; byte counts are None where a shape is not known."""

    id: int
    device: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_bytes: int | None
    output_bytes: int | None

    def to_dict(self) -> dict[str, Any]:
        """The partition as in ``check --format json``."""
        return {
            "id": self.id,
            "device": self.device,
            "nodes": list(self.nodes),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "input_bytes": self.input_bytes,
            "output_bytes": self.output_bytes,
        }


@dataclass(frozen=True)
class BuildResult:
    """Whether the toolkit would build the model, and every reason why not."""

    ok: bool = True
    reasons: tuple[Clause, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The build as in ``check --format json``."""
        return {"ok": self.ok, "reasons": [reason.to_dict() for reason in self.reasons]}


@dataclass(frozen=True)
class TargetResult:
    """Everything a check says about one target.

    Attributes:
        soc, precision, toolkit, rules: what was checked against. For a target that is no SoC, ``soc`` is its name
            and the others are None.
        build: whether the toolkit would build the model.
        summary: nodes per verdict, ``partitions``, ``transitions`` and ``boundary_bytes`` (tensors that cross from
            one partition to another; None where a shape is not known).
        nodes: every node of the file in file order.
        compiled: predicted layer table in execution order.
        partitions: in execution order.
        io: what the operator list says about each input and output of the model.
        notes: remarks on how the target was chosen.
    """

    soc: str
    precision: str | None
    toolkit: str | None
    rules: str | None
    build: BuildResult
    summary: Mapping[str, int | None]
    nodes: tuple[NodeResult, ...]
    compiled: tuple[CompiledRow, ...]
    partitions: tuple[PartitionResult, ...]
    io: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_backend(self) -> bool:
        """Whether the target is no SoC but a back end such as ``tensorrt@10.7``."""
        return self.precision is None

    @property
    def label(self) -> str:
        """The target in words: ``rk3588 fp16``."""
        return f"{self.soc} {self.precision}" if self.precision else self.soc

    def node(self, name: str) -> NodeResult | None:
        """The node of this name, or else the one that writes the tensor of this name."""
        return next((n for n in self.nodes if n.name == name), None) or next(
            (n for n in self.nodes if name in n.outputs), None
        )

    def to_dict(self) -> dict[str, Any]:
        """The target as in ``check --format json``."""
        return {
            "soc": self.soc,
            "precision": self.precision,
            "toolkit": self.toolkit,
            "rules": self.rules,
            "build": self.build.to_dict(),
            "summary": dict(self.summary),
            "nodes": [node.to_dict() for node in self.nodes],
            "compiled": [row.to_dict() for row in self.compiled],
            "partitions": [partition.to_dict() for partition in self.partitions],
            "io": [dict(tensor) for tensor in self.io],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Report(Result):
    """The answer of :func:`ort_rknpu.check.check`.

    Attributes:
        model: the file's name.
        targets: one result per target, in the order asked for.
        values: dtype and shape of each tensor, such as ``float32[1,3,640,640]``; not part of the JSON.
    """

    model: str
    targets: tuple[TargetResult, ...]
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def target(self, soc: str | None = None) -> TargetResult:
        """The result for ``soc``, or the only one. KeyError where there is none or several."""
        found = [t for t in self.targets if soc is None or t.soc == soc]
        if len(found) != 1:
            raise KeyError(f"{soc or 'one target'} asked for, the report has {', '.join(t.soc for t in self.targets)}")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """The report as in ``check --format json``."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "version": __version__,
            "targets": [target.to_dict() for target in self.targets],
        }

    def to_html(self) -> str:
        """A self-contained page."""
        from ort_rknpu.present import html

        return html.report_page(self)

    def __str__(self) -> str:
        from ort_rknpu.present import text

        return text.report_text(self)
