"""How well predictions agree with recordings of the vendor's compiler.

The positive class is "leaves the NPU": verdicts cpu, split and unsupported alike. An ``unsupported`` whose clause ends
in ``.overflow`` counts as npu: the compiler prints such a row for the NPU. Nodes that the record folded are not scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ort_rknpu.vendor.records import Record

LEAVING = frozenset({"cpu", "split", "unsupported"})


@dataclass(frozen=True)
class PredictedNode:
    """The verdict predicted for one node (``overflow`` where only an ``.overflow`` clause makes it unsupported)."""

    op_type: str
    verdict: str
    compiled_as: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    overflow: bool = False

    @property
    def leaves(self) -> bool:
        """Whether the node is predicted to leave the NPU."""
        return self.verdict in LEAVING and not self.overflow


@dataclass(frozen=True)
class Prediction:
    """What is predicted for one model on one target: verdict by node name, (op, device) rows, build verdict."""

    nodes: Mapping[str, PredictedNode]
    rows: tuple[tuple[str, str], ...]
    build_ok: bool
    build_reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Miss:
    """A node on the wrong side: what the record says and what was predicted."""

    name: str
    recorded: str
    predicted: PredictedNode


@dataclass(frozen=True)
class RunScore:
    """Agreement on one model and target. The node counts are zero where the toolkit refused the model."""

    record: Record
    prediction: Prediction
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    misses: tuple[Miss, ...]
    cpu_rows_missing: Mapping[str, int]
    cpu_rows_extra: Mapping[str, int]

    @property
    def build_agrees(self) -> bool:
        """Whether "builds" or "is refused" was predicted rightly."""
        return self.prediction.build_ok == self.record.ok

    @property
    def rows_agree(self) -> bool:
        """Whether the op types of the predicted CPU rows are exactly the recorded ones, as a multiset."""
        return not self.cpu_rows_missing and not self.cpu_rows_extra


def score_run(record: Record, prediction: Prediction) -> RunScore:
    """Compares a prediction with what was recorded for the same model and target."""
    counts: Counter[tuple[bool, bool]] = Counter()
    misses = []
    absent = PredictedNode("?", "unknown")
    for name, recorded in record.nodes.items():
        if recorded == "folded":
            continue
        predicted = prediction.nodes.get(name, absent)
        expected = recorded in LEAVING
        counts[expected, predicted.leaves] += 1
        if expected != predicted.leaves:
            misses.append(Miss(name, recorded, predicted))
    recorded_rows = Counter(row.op for row in record.layers if row.device == "cpu")
    predicted_rows = Counter(op for op, device in prediction.rows if device == "cpu") if record.ok else Counter()
    return RunScore(
        record=record,
        prediction=prediction,
        true_positive=counts[True, True],
        false_positive=counts[False, True],
        false_negative=counts[True, False],
        true_negative=counts[False, False],
        misses=tuple(misses),
        cpu_rows_missing=dict(recorded_rows - predicted_rows),
        cpu_rows_extra=dict(predicted_rows - recorded_rows),
    )


@dataclass
class Tally:
    """The sum of many runs."""

    runs: int = 0
    built: int = 0
    build_agree: int = 0
    every_node: int = 0
    rows_agree: int = 0
    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0
    true_negative: int = 0
    misses: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, score: RunScore) -> None:
        """Counts one run in."""
        self.runs += 1
        self.build_agree += score.build_agrees
        if not score.record.ok:
            return
        self.built += 1
        self.every_node += not score.misses
        self.rows_agree += score.rows_agree
        self.true_positive += score.true_positive
        self.false_positive += score.false_positive
        self.false_negative += score.false_negative
        self.true_negative += score.true_negative
        self.misses.update((m.predicted.op_type, m.recorded, m.predicted.verdict) for m in score.misses)

    @property
    def nodes(self) -> int:
        """Nodes scored."""
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative

    @property
    def accuracy(self) -> float:
        """Share of nodes on the right side."""
        return _ratio(self.true_positive + self.true_negative, self.nodes)

    @property
    def precision(self) -> float:
        """Share of the nodes predicted to leave the NPU that do."""
        return _ratio(self.true_positive, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float:
        """Share of the nodes that leave the NPU that were predicted to."""
        return _ratio(self.true_positive, self.true_positive + self.false_negative)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 where nothing leaves the NPU and nothing was predicted to."""
        return _ratio(2 * self.true_positive, 2 * self.true_positive + self.false_positive + self.false_negative)

    @property
    def every_node_share(self) -> float:
        """Share of built runs with every node on the right side."""
        return _ratio(self.every_node, self.built)

    @property
    def rows_share(self) -> float:
        """Share of built runs with exactly the right CPU rows."""
        return _ratio(self.rows_agree, self.built)

    @property
    def build_share(self) -> float:
        """Share of runs whose build verdict is right."""
        return _ratio(self.build_agree, self.runs)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def tally(scores: Iterable[RunScore]) -> Tally:
    """The sum of the given runs."""
    result = Tally()
    for score in scores:
        result.add(score)
    return result


def by_target(scores: Iterable[RunScore]) -> dict[str, Tally]:
    """The sum of the given runs per ``soc/precision``, in order of name."""
    result: dict[str, Tally] = {}
    for score in scores:
        result.setdefault(f"{score.record.soc}/{score.record.precision}", Tally()).add(score)
    return dict(sorted(result.items()))
