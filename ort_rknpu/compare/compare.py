"""``compare``: runs a model in float32 and with NPU numerics and measures where the two part."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from custom_ops.loading import Source, embed_external_data, external_tensors, read_model
from custom_ops.rewrite import rewrite
from ort_rknpu.compare.comparison import Comparison, Contributor, Drift, PartitionComparison, TensorComparison
from ort_rknpu.compare.macs import node_macs
from ort_rknpu.compare.metrics import Accumulator, Metrics
from ort_rknpu.compare.probe import Probe
from ort_rknpu.errors import ModelError
from ort_rknpu.session.assignment import Assignment, assign
from ort_rknpu.session.calibration import Calibration, CheckedReader, calibration_samples
from ort_rknpu.session.feeds import ModelInput, input_infos, random_feeds
from ort_rknpu.session.numerics import NpuModel, npu_model
from ort_rknpu.session.options import ProviderOptions
from ort_rknpu.session.profile import event_node, find_labels, node_events
from ort_rknpu.session.proto import GraphIndex
from ort_rknpu.session.widen import widen_half

Feeds = Mapping[str, np.ndarray]

DRIFT_DB = 40.0
"""Below this signal-to-noise ratio, 1 % of noise, a tensor has drifted."""

_AT_ONCE = 64
_TIMED_RUNS = 3


def compare(
    model: Source,
    soc: str,
    inputs: Feeds | Iterable[Feeds] | None = None,
    *,
    precision: str | None = None,
    toolkit: str = "2.3.2",
    rules: str = "measured",
    cpu_numerics: str = "float32",
    calibration: Calibration | None = None,
    batches: int = 1,
    seed: int = 0,
    drift_db: float = DRIFT_DB,
    contributors: int = 10,
    quiet: bool = True,
) -> Comparison:
    """Runs ``model`` in float32 and with the NPU's numerics on the same inputs.

    Args:
        model: path, bytes or ModelProto.
        soc, precision, toolkit, rules, cpu_numerics: as the provider's options.
        inputs: one mapping from input names to arrays, or several; inputs that are missing are random.
        calibration: for int8: samples or a folder.
        batches: how many random inputs, where ``inputs`` is one mapping or None.
        seed: of random inputs.
        drift_db: signal-to-noise ratio below which a tensor has drifted.
        contributors: how many of the noisiest ops to list.
        quiet: no progress bar while calibrating.

    Raises:
        ModelError: the model cannot be used or run on these inputs.
        OptionError: an unknown option or value.
        CalibrationError: int8 without fitting calibration data.
    """
    given = {"soc": soc, "toolkit": toolkit, "rules": rules, "cpu_numerics": cpu_numerics}
    options = ProviderOptions.parse({**given, **({"precision": precision} if precision else {})})
    assignment = assign(model, options)
    proto = onnx.ModelProto()
    proto.CopyFrom(assignment.proto)
    _, folder = read_model(model)
    if external_tensors(proto) and not (folder is not None and embed_external_data(proto, folder)):
        raise ModelError("compare needs weights that fit into one file, that is less than 2 GiB")
    infos = input_infos(proto)

    def reader() -> CheckedReader:
        return CheckedReader(calibration_samples(calibration or [], infos), infos, quiet=quiet)

    calibrated = reader if calibration is not None else None
    emulated = npu_model(proto, assignment.groups, assignment.values, options, calibrated)
    widened = widen_half(proto)
    exact = NpuModel(rewrite(proto, "native"), aliases=widened)
    feeds = _batches(infos, inputs, batches, seed)
    measured = _Measurements(assignment, exact, emulated, feeds)
    boundaries = {partition.id: assignment.boundary(partition.id) for partition in assignment.result.partitions}
    outputs = [output.name for output in proto.graph.output]
    measured.prefetch([*outputs, *(name for pair in boundaries.values() for names in pair for name in names)])
    times = [_times(assignment, built, feeds[0]) for built in (exact, emulated)]
    partitions = []
    for partition in assignment.result.partitions:
        entering, leaving = (measured.tensors(names) for names in boundaries[partition.id])
        members = [identity for identity, number in assignment.partition_of.items() if number == partition.id]
        counts = [node_macs(assignment.index, assignment.index.nodes[identity]) for identity in members]
        macs = None if any(count is None for count in counts) else sum(count or 0 for count in counts)
        label = f"{partition.device} {partition.id}"
        drift = _drift(measured, set(members), leaving, drift_db)
        partitions.append(
            PartitionComparison(
                partition.id,
                partition.device,
                len(members),
                macs,
                times[0][label],
                times[1][label],
                entering,
                leaving,
                drift,
            )
        )
    found = _contributors(measured, emulated, contributors) if contributors else ()
    name = Path(model).name if isinstance(model, (str, Path)) else proto.graph.name
    return Comparison(
        name,
        options.soc,
        options.precision,
        options.toolkit,
        options.rules,
        len(feeds),
        measured.tensors(outputs),
        tuple(partitions),
        found,
        measured.tensors(name for name in assignment.index.producer if measured.measured(name)),
        assignment.result,
        assignment.types,
    )


def _batches(
    infos: Sequence[ModelInput], inputs: Feeds | Iterable[Feeds] | None, batches: int, seed: int
) -> list[dict[str, np.ndarray]]:
    if inputs is None or isinstance(inputs, Mapping):
        return [random_feeds(infos, seed + number, inputs) for number in range(max(1, batches))]
    result = [random_feeds(infos, seed + number, sample) for number, sample in enumerate(inputs)]
    if not result:
        raise ModelError("no inputs given")
    return result


class _Measurements:
    """Metrics of any tensor, run and measured when first asked for."""

    def __init__(self, assignment: Assignment, exact: NpuModel, emulated: NpuModel, feeds: Sequence[Feeds]) -> None:
        self.assignment = assignment
        self._feeds = feeds
        self._aliases = (exact.aliases, emulated.aliases)
        models = (exact, emulated)
        written = [{name for node in built.model.graph.node for name in node.output if name} for built in models]
        self.known = {
            name
            for name in assignment.index.producer
            if name not in assignment.index.computed
            and all(aliases.get(name, name) in names for aliases, names in zip(self._aliases, written))
        }
        self._probes = [
            Probe(
                built.model,
                sorted({built.aliases.get(name, name) for name in self.known}),
                built.disabled_optimizers,
                built.session_entries,
            )
            for built in models
        ]
        self._found: dict[str, Metrics | None] = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Measures what is not yet known, a bounded number of tensors at once."""
        wanted = [name for name in dict.fromkeys(names) if name in self.known and name not in self._found]
        for start in range(0, len(wanted), _AT_ONCE):
            self._measure(wanted[start : start + _AT_ONCE])

    def _measure(self, names: list[str]) -> None:
        accumulators: dict[str, Accumulator | None] = {name: Accumulator() for name in names}
        aliases = [[own.get(name, name) for name in names] for own in self._aliases]
        for feeds in self._feeds:
            results = [probe.run(feeds, list(dict.fromkeys(own))) for probe, own in zip(self._probes, aliases)]
            for name, *own in zip(names, *aliases):
                expected, actual = (result[alias] for result, alias in zip(results, own))
                accumulator = accumulators[name]
                if accumulator is not None and expected.shape == actual.shape and expected.dtype.kind in "fiub":
                    accumulator.add(expected, actual)
                else:
                    accumulators[name] = None
        self._found.update((name, None if found is None else found.result()) for name, found in accumulators.items())

    def measured(self, name: str) -> bool:
        """Whether the tensor was asked for."""
        return name in self._found

    def get(self, name: str) -> Metrics | None:
        """The metrics of one tensor, None where the two runs cannot be compared."""
        self.prefetch([name])
        return self._found.get(name)

    def noise(self, name: str) -> float:
        """Signal-to-noise ratio of a tensor in decibel; inf for inputs and constants."""
        found = self.get(name)
        if found is None:
            return float("inf")
        return float("-inf") if found.overflows or found.nans else found.sqnr_db

    def tensors(self, names: Iterable[str]) -> tuple[TensorComparison, ...]:
        """The named tensors that can be compared."""
        return tuple(TensorComparison(name, found) for name in names if (found := self.get(name)) is not None)


def _drift(
    measured: _Measurements, members: set[str], leaving: Sequence[TensorComparison], limit: float
) -> Drift | None:
    """The first node of a partition whose result has drifted, found by bisection."""
    index = measured.assignment.index
    order = [identity for identity in index.nodes if identity in members and identity in measured.known]
    drifted = [tensor.name for tensor in leaving if measured.noise(tensor.name) < limit]
    if not order or not drifted:
        return None
    last = max(order.index(index.producer[name]) for name in drifted if index.producer[name] in order)
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        if measured.noise(order[middle]) < limit:
            high = middle
        else:
            low = middle + 1
    identity = order[low]
    # the order is not one chain: go back along the edges as long as something before has drifted too
    while True:
        reads = [name for name in index.nodes[identity].input if index.producer.get(name) in measured.known]
        earlier = [index.producer[name] for name in reads if measured.noise(name) < limit]
        earlier = [producer for producer in earlier if producer in members]
        if not earlier:
            break
        identity = earlier[0]
    reads = [name for name in index.nodes[identity].input if name]
    inputs = min((measured.noise(name) for name in reads), default=float("inf"))
    if inputs < limit:
        return None
    node = measured.assignment.nodes.get(identity)
    return Drift(node.name if node else identity, identity, measured.noise(identity), inputs, limit)


def _contributors(measured: _Measurements, emulated: NpuModel, count: int) -> tuple[Contributor, ...]:
    """The nodes whose result has most noise over what they read."""
    assignment, index = measured.assignment, measured.assignment.index
    wanted = set(emulated.rounded) or set(emulated.aliases)
    names = [name for name in index.producer if name in wanted and name in measured.known]
    measured.prefetch(names)
    ratio: dict[str, float] = {}

    def noise(name: str) -> float:
        if name not in ratio:
            decibel = measured.noise(name) if name in measured.known else float("inf")
            ratio[name] = min(10 ** (-decibel / 20), 1e9) if decibel > -180 else 1e9
        return ratio[name]

    found = []
    for name in names:
        identity = index.producer[name]
        added = noise(name) - max((noise(read) for read in _sources(index, name, wanted)), default=0.0)
        metrics = measured.get(name)
        if added <= 0 or metrics is None:
            continue
        node = assignment.nodes.get(identity)
        found.append(
            Contributor(
                node.name if node else identity,
                node.compiled_as[-1] if node and node.compiled_as else "",
                assignment.partition_of.get(identity),
                name,
                added,
                metrics.sqnr_db,
                metrics.overflows,
            )
        )
    found.sort(key=lambda entry: (-entry.overflows if entry.added >= 1e8 else 0, -entry.added))
    return tuple(found[:count])


def _sources(index: GraphIndex, name: str, wanted: set[str]) -> set[str]:
    """The nearest tensors of ``wanted`` that ``name`` is computed from."""
    sources: set[str] = set()
    seen: set[str] = set()
    waiting = list(index.nodes[index.producer[name]].input)
    while waiting:
        read = waiting.pop()
        if read in seen or read not in index.producer:
            continue
        seen.add(read)
        if read in wanted:
            sources.add(read)
        else:
            waiting.extend(index.nodes[index.producer[read]].input)
    return sources


def _times(assignment: Assignment, built: NpuModel, feeds: Feeds) -> dict[str, float]:
    """Milliseconds in each partition, ``npu 0`` and so on: the best of a few runs for every node."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.enable_profiling = True
    for key, value in built.session_entries.items():
        options.add_session_config_entry(key, value)
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(
            built.model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=set(built.disabled_optimizers),
        )
        for _ in range(_TIMED_RUNS):
            session.run(None, dict(feeds))
        events = node_events(session.end_profiling())
    labels = find_labels([event_node(event) for event in events], assignment.labels(built.model))
    best: dict[tuple[str, str], float] = {}
    for event, label in zip(events, labels):
        place = (label or "", event["name"])
        best[place] = min(best.get(place, float("inf")), event["dur"] / 1000)
    totals: dict[str, float] = defaultdict(float)
    for (partition, _), time in best.items():
        totals[partition] += time
    return totals
