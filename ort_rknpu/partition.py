"""Groups steps of one device into maximal convex partitions and measures what crosses between them.

A partition is convex: no path leaves it and comes back, so partitions run one after another, each in one go. Two
devices are drained alternately, every step that is ready before the switch; starting on the device that needs
fewer switches, no two partitions of one device can be merged any more. Steps that run nowhere keep their place in
the order (what depends on them waits) but belong to no partition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ort_rknpu.graph import Graph, Op, Value

NPU = "npu"
CPU = "cpu"


@dataclass(frozen=True)
class Step:
    """One thing to run, in a valid execution order.

    Attributes:
        device: ``npu``, ``cpu``, None for a step that costs nothing and goes with what it reads, anything else
            for a step that runs nowhere.
        inputs: names of the tensors it reads; constants are left out.
        outputs: names of the tensors it writes.
    """

    device: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Partition:
    """Steps that run on one device in one go.

    Attributes:
        id: position in execution order.
        device: ``npu`` or ``cpu``.
        steps: positions in the list of steps, ascending.
        inputs: tensors it reads that are made outside, in order of first use.
        outputs: tensors it makes that are read outside or leave the model.
        input_bytes, output_bytes: size of those, None where a shape is not known.
    """

    id: int
    device: str
    steps: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_bytes: int | None
    output_bytes: int | None


@dataclass(frozen=True)
class Partitioning:
    """All partitions in execution order.

    Attributes:
        partitions: in execution order.
        transitions: how often execution goes over to the other device.
        boundary_bytes: tensors that one partition makes and another reads, counted once per reader; None where a
            shape is not known.
        of_step: partition id of every step, None where it runs nowhere or costs nothing before any partition.
    """

    partitions: tuple[Partition, ...]
    transitions: int
    boundary_bytes: int | None
    of_step: tuple[int | None, ...]


def partition_steps(
    steps: Sequence[Step], outputs: Iterable[str], sizes: Mapping[str, int | None] | None = None
) -> Partitioning:
    """Partitions ``steps``.

    Args:
        steps: in a valid execution order.
        outputs: names of the tensors that leave the model.
        sizes: bytes of each tensor; a tensor that is missing or None is of unknown size.
    """
    producer = {name: index for index, step in enumerate(steps) for name in step.outputs}
    needs = [sorted({producer[n] for n in step.inputs if n in producer}) for step in steps]
    groups = _groups(steps, needs)
    home: list[int | None] = [None] * len(steps)
    for number, group in enumerate(groups):
        for index in group:
            home[index] = number
    return _describe(steps, groups, home, producer, outputs, sizes or {})


def _groups(steps: Sequence[Step], needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Convex groups of one device each, in execution order. The first step of a group tells its device."""
    free = [step.device is None for step in steps]
    on_npu = [step.device == NPU for step in steps]
    on_cpu = [step.device == CPU for step in steps]
    groups: list[list[int]] = []
    for phase in _drain(range(len(steps)), on_npu, free, needs):
        if on_npu[phase[0]] or len({on_cpu[i] for i in phase if not free[i]}) == 1:
            groups.append(phase)
        else:
            groups.extend(_drain(phase, on_cpu, free, needs))
    return groups


def _drain(
    members: Sequence[int], side: Sequence[bool], free: Sequence[bool], needs: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Splits ``members`` by ``side`` into the fewest phases that alternate and keep the order."""
    first = next((side[i] for i in members if not free[i]), True)
    phases = _phases(members, side, free, needs, first)
    other = _phases(members, side, free, needs, not first)
    return other if len(other) < len(phases) else phases


def _phases(
    members: Sequence[int], side: Sequence[bool], free: Sequence[bool], needs: Sequence[Sequence[int]], start: bool
) -> list[list[int]]:
    """Runs everything of one side that is ready, then of the other, beginning with ``start``.

    Even levels are of the side ``start``, odd ones of the other. A free step goes with the last of what it reads;
    one that waits for no member is in no phase.
    """
    level: dict[int, int] = {}
    phases: dict[int, list[int]] = {}
    for index in members:
        earliest = max((level[n] for n in needs[index] if n in level), default=-1)
        if not free[index]:
            earliest = max(earliest, 0)
            earliest += (earliest % 2 == 0) != (side[index] == start)
        level[index] = earliest
        if earliest >= 0:
            phases.setdefault(earliest, []).append(index)
    return [phases[key] for key in sorted(phases)]


def _describe(
    steps: Sequence[Step],
    groups: Sequence[Sequence[int]],
    home: Sequence[int | None],
    producer: Mapping[str, int],
    outputs: Iterable[str],
    sizes: Mapping[str, int | None],
) -> Partitioning:
    reads: list[dict[str, None]] = [{} for _ in groups]
    read_elsewhere = set(outputs)
    for index, step in enumerate(steps):
        reader = home[index]
        for name in step.inputs:
            source = producer.get(name)
            maker = None if source is None else home[source]
            if maker is None or maker != reader:
                read_elsewhere.add(name)
                if reader is not None:
                    reads[reader][name] = None
    partitions: list[Partition] = []
    of_step: list[int | None] = [None] * len(steps)
    crossing: list[str] = []
    for number, group in enumerate(groups):
        device = steps[group[0]].device
        if device not in (NPU, CPU):
            continue
        inputs = tuple(reads[number])
        made = tuple(name for i in group for name in steps[i].outputs if name in read_elsewhere)
        for index in group:
            of_step[index] = len(partitions)
        crossing += [name for name in inputs if name in producer and of_step[producer[name]] is not None]
        partitions.append(
            Partition(
                len(partitions),
                device,
                tuple(group),
                inputs,
                made,
                total_bytes(inputs, sizes),
                total_bytes(made, sizes),
            )
        )
    transitions = sum(a.device != b.device for a, b in itertools.pairwise(partitions))
    return Partitioning(tuple(partitions), transitions, total_bytes(crossing, sizes), tuple(of_step))


def total_bytes(names: Iterable[str], sizes: Mapping[str, int | None]) -> int | None:
    """The sum of the named tensors' sizes, None if one is not known."""
    total = 0
    for name in names:
        size = sizes.get(name)
        if size is None:
            return None
        total += size
    return total


_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8}


def tensor_bytes(value: Value, precision: str) -> int | None:
    """Bytes of a tensor as the runtime holds it, None where its shape or dtype is not known."""
    return shape_bytes(value.static_shape, value.dtype, precision)


def shape_bytes(shape: Sequence[int] | None, dtype: str | None, precision: str) -> int | None:
    """The same from its shape and dtype.

    A floating-point tensor takes the target's precision, 2 bytes for fp16 and 1 for int8, on either device: the
    runtime keeps activations so. Others take their own dtype.
    """
    width = (1 if precision == "int8" else 2) if dtype in _FLOATS else _BYTES.get(dtype or "")
    return None if shape is None or width is None else math.prod(shape) * width


def partition_graph(graph: Graph, devices: Mapping[Op, str | None], precision: str = "fp16") -> Partitioning:
    """Partitions the ops of ``graph``; step ``i`` is ``graph.ops[i]``.

    Args:
        graph: in a valid execution order.
        devices: ``npu``, ``cpu``, None (costs nothing) or another word (runs nowhere) for every op.
        precision: of the activations, for sizes.
    """
    steps = []
    sizes: dict[str, int | None] = {}
    for op in graph.ops:
        read = dict.fromkeys(v for v in read_values(op) if not v.constant)
        written = [v for v in op.outputs if v.name and not v.constant]
        for value in (*read, *written):
            if value.name not in sizes:
                sizes[value.name] = tensor_bytes(value, precision)
        steps.append(Step(devices[op], tuple(v.name for v in read), tuple(v.name for v in written)))
    return partition_steps(steps, [v.name for v in graph.outputs], sizes)


def read_values(op: Op) -> Iterator[Value]:
    """What the op reads: its inputs and what its subgraphs take from around them."""
    yield from (v for v in op.inputs if v is not None)
    for body in op.subgraphs.values():
        own = {v for inner in body.ops for v in inner.outputs} | set(body.inputs)
        for inner in body.ops:
            yield from (v for v in read_values(inner) if v not in own)
        yield from (v for v in body.outputs if v not in own)
