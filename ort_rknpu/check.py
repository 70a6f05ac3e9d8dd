"""The capability check: for each target the verdict of every node of a model, and every reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from ort_rknpu.backend_check import check_backend
from ort_rknpu.collector import collector_paused
from ort_rknpu.compiler import compile_model
from ort_rknpu.errors import MISFITS, ModelError, OptionError, TargetError
from ort_rknpu.graph import Dim, Graph, Op, Value
from ort_rknpu.model import Model
from ort_rknpu.partition import Partitioning, Step, partition_steps, read_values, shape_bytes, tensor_bytes
from ort_rknpu.report import (
    SOC_VERDICTS,
    BuildResult,
    CompiledRow,
    NodeResult,
    PartitionResult,
    Report,
    TargetResult,
)
from ort_rknpu.rules import documented
from ort_rknpu.rules.clause import Clause, Placement
from ort_rknpu.rules.io_limits import io_limits
from ort_rknpu.targets.backends.registry import BackendTarget, get_backend_target, is_backend_name, valid_names
from ort_rknpu.targets.socs import DEFAULT_TOOLKIT, PRECISIONS, Target, get_target, socs

RULES = ("measured", "documented")


def check(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto | Model,
    soc: str | Sequence[str] = "all",
    precision: str | None = None,
    toolkit: str = DEFAULT_TOOLKIT,
    rules: str = "measured",
    shapes: Mapping[str, Sequence[Dim]] | Sequence[str] | None = None,
) -> Report:
    """Checks a model against one or several SoCs and other back ends. Weights are not needed.

    Args:
        model: path, bytes, ModelProto, or an already loaded :class:`Model`.
        soc: a name, several names, or ``all`` SoCs; also back ends such as ``tensorrt@10.7`` (see
            :mod:`ort_rknpu.targets.backends.registry`), which take none of the options below but ``shapes``.
        precision: of the activations on the NPU, ``fp16`` or ``int8``; by default fp16 where the SoC has it. In a
            list or ``all`` a SoC without it takes its own and the result says so.
        toolkit: version of the vendor's toolkit.
        rules: ``measured`` (what the vendor's compiler was seen to do) or ``documented`` (the operator list alone).
        shapes: shapes of model inputs, see :meth:`Model.load`.

    Raises:
        ModelError: the model cannot be used.
        TargetError: an unknown SoC, precision or toolkit, or one named SoC that lacks the precision.
        OptionError: an unknown rule set or malformed ``shapes``.
    """
    if rules not in RULES:
        raise OptionError(f"unknown rules {rules!r}; known: {', '.join(RULES)}")
    targets = resolve_targets(soc, precision, toolkit)
    view = model if isinstance(model, Model) else Model.load(model, shapes)
    chosen = [target for target, _ in targets if isinstance(target, Target)]
    with collector_paused():
        judged = _by_list(view, chosen) if rules == "documented" else _by_compiler(view, chosen)
        sizes = {precision: _sizes(view.graph, precision) for precision in {target.precision for target in chosen}}
        results = tuple(
            check_backend(view, target)
            if isinstance(target, BackendTarget)
            else _result(view, target, rules, next(judged), sizes[target.precision], notes)
            for target, notes in targets
        )
    return Report(view.name, results, {value.name: value.type_text for value in view.graph.values()})


def resolve_targets(
    soc: str | Sequence[str], precision: str | None, toolkit: str = DEFAULT_TOOLKIT
) -> list[tuple[Target | BackendTarget, tuple[str, ...]]]:
    """The targets asked for, each once, with a note where a SoC takes another precision than asked.

    Raises:
        TargetError: see :func:`check`.
    """
    if isinstance(soc, str) and soc != "all" and not is_backend_name(soc):
        return [(_soc_target(soc, precision, toolkit), ())]
    names = [soc] if isinstance(soc, str) else list(soc)
    if not names:
        raise TargetError(f"no SoC given; known: {', '.join(socs())}")
    if precision is not None and precision not in PRECISIONS:
        raise TargetError(f"unknown precision {precision!r}; known: {', '.join(PRECISIONS)}")
    result: dict[str, tuple[Target | BackendTarget, tuple[str, ...]]] = {}
    for name in names:
        if is_backend_name(name):
            backend = get_backend_target(name)
            result.setdefault(backend.name, (backend, ()))
            continue
        for single in socs() if name == "all" else [name]:
            own = _soc_target(single, None, toolkit)
            if precision is None or precision in own.soc.precisions:
                result.setdefault(own.soc.name, (get_target(single, precision, toolkit), ()))
            else:
                note = f"{own.soc.name} has no {precision}, checked with {own.precision}"
                result.setdefault(own.soc.name, (own, (note,)))
    return list(result.values())


def _soc_target(name: str, precision: str | None, toolkit: str) -> Target:
    """:func:`get_target`, but an unknown name is answered with the back ends too."""
    if name.lower() not in socs():
        raise TargetError(f"unknown SoC {name!r}; known: {', '.join(socs())}; other targets: {valid_names()}")
    return get_target(name, precision, toolkit)


@dataclass(frozen=True)
class _Table:
    """What is placed, whether nodes of the file or rows of a compiled table; the same for several targets.

    Attributes:
        ops: op of each row.
        reads, writes: names of the tensors of each row, constants left out.
        origins: nodes of the file that each row computes, ascending.
        inserted: rows that no node asked for.
        aside: rows in bodies of control flow, which are no step of the main graph.
        rows_of: the rows of each node of the file.
    """

    ops: Sequence[str]
    reads: Sequence[tuple[str, ...]]
    writes: Sequence[tuple[str, ...]]
    origins: Sequence[tuple[int, ...]]
    inserted: Sequence[bool]
    aside: Sequence[bool]
    rows_of: Sequence[Sequence[int]]


def _rows_of(nodes: int, origins: Sequence[tuple[int, ...]], inserted: Sequence[bool]) -> list[list[int]]:
    result: list[list[int]] = [[] for _ in range(nodes)]
    for row, (numbers, helper) in enumerate(zip(origins, inserted)):
        if not helper:
            for number in numbers:
                result[number].append(row)
    return result


@dataclass(frozen=True)
class _Judged:
    """A table as one target sees it.

    Attributes:
        refused: nodes that the toolkit refuses the model because of, with the reasons.
        notes: what else is to say of a node.
        sizes: bytes of tensors that only the table knows.
    """

    table: _Table
    placements: Sequence[Placement]
    build: BuildResult = field(default_factory=BuildResult)
    refused: Mapping[int, tuple[Clause, ...]] = field(default_factory=dict)
    notes: Mapping[int, tuple[Clause, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int | None] = field(default_factory=dict)


def _by_list(model: Model, targets: Sequence[Target]) -> Iterator[_Judged]:
    """Places every node by the written list; ops that look alike to the rules are placed once."""
    walked = [(op, aside) for op, aside in _walk(model.graph, False) if not _is_folded(op)]
    ops = [op for op, _ in walked]
    keys = [_signature(op) for op in ops]
    origins = [tuple(sorted(op.origins)) for op in ops]
    inserted = [False] * len(ops)
    table = _Table(
        ops=[op.op_type for op in ops],
        reads=[tuple(v.name for v in dict.fromkeys(read_values(op)) if not v.constant) for op in ops],
        writes=[tuple(v.name for v in op.outputs if v.name) for op in ops],
        origins=origins,
        inserted=inserted,
        aside=[aside for _, aside in walked],
        rows_of=_rows_of(len(model.nodes), origins, inserted),
    )
    judges = {key: documented.Judge(op) for key, op in zip(keys, ops)}
    for target in targets:
        placed = {key: judge.place(target) for key, judge in judges.items()}
        yield _Judged(table, [placed[key] for key in keys])


def _place(op: Op, target: Target) -> Placement:
    try:
        return documented.place(op, target)
    except MISFITS as error:
        raise ModelError(f"node {op.name!r} ({op.op_type}) does not fit its operator ({error})") from error


def _by_compiler(model: Model, targets: Sequence[Target]) -> Iterator[_Judged]:
    """Places the rows of the table that the compiler is predicted to print."""
    inner = dict(_inner_origins(model.graph))
    dtypes = {value.name: value.dtype for value in model.graph.values()}
    given = {value.name for value in model.graph.inputs}
    ascending: dict[frozenset[int], tuple[int, ...]] = {}
    for compilation in compile_model(model, targets):
        rows = compilation.ops
        made = given.union(name for row in rows for name in row.outputs)
        origins = []
        for row in rows:
            if row.origins not in ascending:
                held = row.origins.union(*(inner[i] for i in row.origins if i in inner))
                ascending[row.origins] = tuple(sorted(held))
            origins.append(ascending[row.origins])
        inserted = [row.inserted for row in rows]
        table = _Table(
            ops=[row.op for row in rows],
            reads=[tuple(dict.fromkeys(name for name in row.inputs if name in made)) for row in rows],
            writes=[tuple(name for name in row.outputs if name) for row in rows],
            origins=origins,
            inserted=inserted,
            aside=[False] * len(rows),
            rows_of=_rows_of(len(model.nodes), origins, inserted),
        )
        sizes = {
            name: shape_bytes(shape, dtypes.get(name) or "float32", compilation.target.precision)
            for row in rows
            for name, shape in zip(row.outputs, row.output_shapes)
        }
        build = BuildResult(compilation.build.ok, compilation.build.reasons)
        placements = [Placement(row.device, row.clauses) for row in rows]
        yield _Judged(table, placements, build, compilation.build.nodes, compilation.notes, sizes)


def _inner_origins(graph: Graph) -> Iterator[tuple[int, frozenset[int]]]:
    """Node with bodies -> the nodes in them: the compiler has one row for all of them."""
    for op in graph.ops:
        if op.subgraphs:
            inside = frozenset().union(*(o.origins for body in op.subgraphs.values() for o, _ in _walk(body, True)))
            yield max(op.origins), inside


def _walk(graph: Graph, aside: bool) -> Iterator[tuple[Op, bool]]:
    """Every op, and whether it is in a body of control flow."""
    for op in graph.ops:
        yield op, aside
        for body in op.subgraphs.values():
            yield from _walk(body, True)


def _is_folded(op: Op) -> bool:
    return bool(op.outputs) and all(value.constant for value in op.outputs)


def _signature(op: Op) -> Any:
    """Equal for ops between which no rule can tell a difference."""
    return (
        op.op_type,
        op.domain,
        tuple(None if v is None else _value_signature(v) for v in op.inputs),
        tuple((v.shape, v.dtype) for v in op.outputs),
        tuple(sorted((name, _freeze(value)) for name, value in op.attributes.items())),
    )


def _value_signature(value: Value) -> Any:
    data = None if value.const is None else _freeze(value.const)
    return value.shape, value.dtype, value.constant, data, value.producer is None


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        # objects have no bytes of their own; large arrays are told apart by identity, which is always safe
        return (
            id(value) if value.size > 64 or value.dtype.hasobject else (value.dtype.str, value.shape, value.tobytes())
        )
    if isinstance(value, list):
        return tuple(_freeze(v) for v in value)
    return value if isinstance(value, (int, float, str, type(None))) else id(value)


def _sizes(graph: Graph, precision: str) -> dict[str, int | None]:
    return {value.name: tensor_bytes(value, precision) for value in graph.values() if not value.constant}


def _result(
    model: Model,
    target: Target,
    rules: str,
    judged: _Judged,
    sizes: Mapping[str, int | None],
    notes: tuple[str, ...],
) -> TargetResult:
    table, placements = judged.table, judged.placements
    steps = [
        Step("subgraph" if aside else placement.device, reads, writes)
        for placement, aside, reads, writes in zip(placements, table.aside, table.reads, table.writes)
    ]
    parts = partition_steps(steps, [v.name for v in model.graph.outputs], {**sizes, **judged.sizes})
    names = [node.name for node in model.nodes]
    nodes = _node_results(model, judged, parts)
    counts = Counter(node.verdict for node in nodes)
    summary: dict[str, int | None] = {"nodes": len(nodes), **{verdict: counts[verdict] for verdict in SOC_VERDICTS}}
    summary.update(partitions=len(parts.partitions), transitions=parts.transitions, boundary_bytes=parts.boundary_bytes)
    return TargetResult(
        soc=target.soc.name,
        precision=target.precision,
        toolkit=target.toolkit,
        rules=rules,
        build=judged.build,
        summary=summary,
        nodes=nodes,
        compiled=tuple(
            CompiledRow(op, placement.device, tuple([names[i] for i in origins]), inserted, reads)
            for op, placement, origins, inserted, reads in zip(
                table.ops, placements, table.origins, table.inserted, table.reads
            )
        ),
        partitions=tuple(
            PartitionResult(
                part.id,
                part.device,
                tuple([names[i] for i in sorted({i for step in part.steps for i in table.origins[step]})]),
                part.inputs,
                part.outputs,
                part.input_bytes,
                part.output_bytes,
            )
            for part in parts.partitions
        ),
        io=tuple(limits.to_dict() for limits in io_limits(model.graph, target)),
        notes=notes,
    )


def _node_results(model: Model, judged: _Judged, parts: Partitioning) -> tuple[NodeResult, ...]:
    table, placements = judged.table, judged.placements
    results = []
    for node, rows in zip(model.nodes, table.rows_of):
        verdict = "folded"
        clauses: tuple[Clause, ...] = ()
        number: int | tuple[int, ...] | None = None
        if len(rows) == 1:
            (row,) = rows
            verdict, clauses = placements[row].device, placements[row].clauses
            number = parts.of_step[row]
        elif rows:
            verdict = verdict_of([placements[row].device for row in rows])
            clauses = tuple(dict.fromkeys(clause for row in rows for clause in placements[row].clauses))
            ids = sorted({found for found in (parts.of_step[row] for row in rows) if found is not None})
            number = None if not ids else ids[0] if len(ids) == 1 else tuple(ids)
        refusal = judged.refused.get(node.index)
        if refusal:
            verdict, clauses = "unsupported", (*clauses, *refusal)
        results.append(
            NodeResult(
                node.name,
                node.op_type,
                node.domain,
                node.outputs,
                verdict,
                tuple([table.ops[row] for row in rows]),
                number,
                clauses,
                judged.notes.get(node.index, ()),
                node.inputs,
            )
        )
    return tuple(results)


def verdict_of(devices: Sequence[str]) -> str:
    """The verdict of a node from the devices of the rows that compute it.

    A row that runs nowhere decides, then one that is not known; rows on both devices make ``split``, no row at all
    ``folded``.
    """
    found = set(devices)
    for worst in ("unsupported", "unknown"):
        if worst in found:
            return worst
    if len(found) > 1:
        return "split"
    return found.pop() if found else "folded"
