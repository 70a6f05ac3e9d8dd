"""The capability check: for each target the verdict of every node of a model, and every reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ort_rknpu.backend_check import check_backend
from ort_rknpu.errors import OptionError, TargetError
from ort_rknpu.graph import Dim, Graph, Op, Value
from ort_rknpu.model import Model
from ort_rknpu.partition import Partitioning, Step, partition_steps, read_values, tensor_bytes
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
    rules: str = "documented",
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
    place = _Documented(view)
    sizes = {p: _sizes(view.graph, p) for p in {t.precision for t, _ in targets if isinstance(t, Target)}}
    results = []
    for target, notes in targets:
        if isinstance(target, BackendTarget):
            results.append(check_backend(view, target))
            continue
        rows = place.rows(target)
        results.append(_result(view, target, rules, rows, sizes[target.precision], notes))
    return Report(view.name, tuple(results), {value.name: _type(value) for value in view.graph.values()})


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


@dataclass(frozen=True, slots=True)
class _Row:
    """One thing that is placed: a node of the file, or a row of the compiled table."""

    op: str
    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[int, ...]
    clauses: tuple[Clause, ...] = ()
    inserted: bool = False
    in_main_graph: bool = True


class _Documented:
    """Places every op of a model by the written list; ops that look alike to the rules are placed once."""

    def __init__(self, model: Model) -> None:
        self.ops = [(op, main) for op, main in _walk(model.graph, True) if not _is_folded(op)]
        self.keys = [_signature(op) for op, _ in self.ops]
        self.reads = [tuple(v.name for v in dict.fromkeys(read_values(op)) if not v.constant) for op, _ in self.ops]
        self.writes = [tuple(v.name for v in op.outputs if v.name) for op, _ in self.ops]

    def rows(self, target: Target) -> list[_Row]:
        placed: dict[Any, Placement] = {}
        rows = []
        for (op, main), key, reads, writes in zip(self.ops, self.keys, self.reads, self.writes):
            placement = placed.get(key)
            if placement is None:
                placement = placed[key] = documented.place(op, target)
            rows.append(
                _Row(
                    op.op_type,
                    placement.device,
                    reads,
                    writes,
                    tuple(sorted(op.origins)),
                    placement.clauses,
                    in_main_graph=main,
                )
            )
        return rows


def _walk(graph: Graph, main: bool) -> Iterator[tuple[Op, bool]]:
    for op in graph.ops:
        yield op, main
        for body in op.subgraphs.values():
            yield from _walk(body, False)


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


def _type(value: Value) -> str:
    dims = "?" if value.shape is None else ",".join("?" if dim is None else str(dim) for dim in value.shape)
    return f"{value.dtype or '?'}[{dims}]"


def _result(
    model: Model,
    target: Target,
    rules: str,
    rows: Sequence[_Row],
    sizes: Mapping[str, int | None],
    notes: tuple[str, ...],
) -> TargetResult:
    steps = [Step(row.device if row.in_main_graph else "subgraph", row.inputs, row.outputs) for row in rows]
    parts = partition_steps(steps, [v.name for v in model.graph.outputs], sizes)
    names = [node.name for node in model.nodes]
    nodes = _node_results(model, rows, parts)
    counts = Counter(node.verdict for node in nodes)
    summary: dict[str, int | None] = {"nodes": len(nodes), **{verdict: counts[verdict] for verdict in SOC_VERDICTS}}
    summary.update(partitions=len(parts.partitions), transitions=parts.transitions, boundary_bytes=parts.boundary_bytes)
    return TargetResult(
        soc=target.soc.name,
        precision=target.precision,
        toolkit=target.toolkit,
        rules=rules,
        build=BuildResult(),
        summary=summary,
        nodes=nodes,
        compiled=tuple(
            CompiledRow(row.op, row.device, tuple(names[i] for i in row.origins), row.inserted, row.inputs)
            for row in rows
        ),
        partitions=tuple(
            PartitionResult(
                part.id,
                part.device,
                tuple(names[i] for i in sorted({i for step in part.steps for i in rows[step].origins})),
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


def _node_results(model: Model, rows: Sequence[_Row], parts: Partitioning) -> tuple[NodeResult, ...]:
    rows_of: list[list[int]] = [[] for _ in model.nodes]
    for index, row in enumerate(rows):
        if not row.inserted:
            for origin in row.origins:
                rows_of[origin].append(index)
    results = []
    for node, found in zip(model.nodes, rows_of):
        ids = sorted({number for number in (parts.of_step[i] for i in found) if number is not None})
        clauses = dict.fromkeys(clause for i in found for clause in rows[i].clauses)
        results.append(
            NodeResult(
                node.name,
                node.op_type,
                node.domain,
                node.outputs,
                verdict_of([rows[i].device for i in found]),
                tuple(rows[i].op for i in found),
                None if not ids else ids[0] if len(ids) == 1 else tuple(ids),
                tuple(clauses),
                inputs=node.inputs,
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
