"""The vendor's toolkit against ``check``: one build per target, and where the two differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ort_rknpu.graph import Dim
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import TOOLKITS, get_target
from ort_rknpu.vendor.predict import predict
from ort_rknpu.vendor.record import record_of
from ort_rknpu.vendor.records import Record
from ort_rknpu.vendor.score import LEAVING, RunScore, score_run
from ort_rknpu.vendor.toolkit import Toolkit


@dataclass(frozen=True)
class Verification:
    """The toolkit's build of one model for one target beside the prediction for it.

    Attributes:
        score: record, prediction and where they differ.
        rules_version: the version whose rules were checked; other than the toolkit's where that is not known here.
        overflows: register-overflow messages that the compiler logged.
    """

    score: RunScore
    rules_version: str
    overflows: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        """What the toolkit did."""
        return self.score.record

    @property
    def differs(self) -> bool:
        """Whether the build verdict, the side of a node or the CPU rows were predicted wrongly."""
        return not self.score.build_agrees or bool(self.score.misses) or not self.score.rows_agree

    def _lines(self) -> Iterator[str]:
        record, prediction = self.record, self.score.prediction
        version = f"toolkit {record.toolkit}"
        if self.rules_version != record.toolkit:
            version += f" (checked by the rules of {self.rules_version})"
        yield f"{record.model} on {record.soc} {record.precision}, {version}"
        built = "builds" if record.ok else f"refused at {record.stage}: {record.error}"
        agreed = (
            "as predicted"
            if self.score.build_agrees
            else "predicted "
            + ("to build" if prediction.build_ok else f"to be refused ({', '.join(prediction.build_reasons)})")
        )
        yield f"  build: {built}; {agreed}"
        if not record.ok:
            return
        scored = sum(verdict != "folded" for verdict in record.nodes.values())
        leaving = sum(verdict in LEAVING for verdict in record.nodes.values())
        yield f"  nodes: {scored - len(self.score.misses)} of {scored} agree; {leaving} leave the NPU"
        for miss in self.score.misses:
            node = miss.predicted
            because = f" ({', '.join(node.clauses)})" if node.clauses else ""
            yield f"    {miss.name} {node.op_type}: toolkit {miss.recorded}, predicted {node.verdict}{because}"
        rows = [f"{op} missing x{count}" for op, count in self.score.cpu_rows_missing.items()]
        rows += [f"{op} too many x{count}" for op, count in self.score.cpu_rows_extra.items()]
        yield f"  CPU rows: {'; '.join(rows) or 'agree'}"
        for message in self.overflows:
            yield f"  overflow: {message}"

    def __str__(self) -> str:
        return "\n".join(self._lines())


def rules_version(toolkit: str) -> str:
    """The newest version with rules of its own that is not newer than the toolkit, else the oldest there is."""

    def key(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.split(".") if part.isdigit())

    fitting = [version for version in TOOLKITS if key(version) <= key(toolkit)]
    return max(fitting or [min(TOOLKITS, key=key)], key=key)


def verify(
    model: str | os.PathLike[str],
    socs: Sequence[str],
    toolkit: Toolkit,
    precision: str | None = None,
    shapes: Mapping[str, Sequence[Dim]] | Sequence[str] | None = None,
) -> list[Verification]:
    """Builds a model with the vendor's toolkit for each SoC and compares with the prediction.

    Args:
        model: path of an ONNX file; weights that are absent are drawn at random.
        socs: names.
        toolkit: the running toolkit.
        precision: ``fp16`` or ``int8``; by default fp16 where the SoC has it.
        shapes: shapes of model inputs, see :meth:`Model.load`.

    Raises:
        ModelError: the file cannot be read as a model.
        TargetError: an unknown SoC, or one without the precision.
        OptionError: malformed ``shapes``.
        ToolkitError: the toolkit's interpreter ended, or an input has no fixed shape.
    """
    version = rules_version(toolkit.version)
    targets = [get_target(soc, precision, version) for soc in socs]
    view = Model.load(model, shapes)
    path = Path(model)
    fixed = {v.name: v.static_shape for v in view.graph.inputs if v.static_shape is not None} if shapes else None
    results = []
    for target, prediction in zip(targets, predict(view, targets), strict=True):
        outcome = toolkit.build(path, target, fixed)
        record = record_of(path.stem, view.proto.graph, target, toolkit.version, outcome)
        results.append(Verification(score_run(record, prediction), version, outcome.log.overflows))
    return results
