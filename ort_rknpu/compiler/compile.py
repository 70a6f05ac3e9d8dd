"""Predicts what the vendor's compiler makes of a model, for any number of targets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ort_rknpu.compiler.compilation import Build, Compilation, CompiledOp
from ort_rknpu.compiler.fusion import fuse_rows, row_name
from ort_rknpu.compiler.pipeline import FOLD, STAGES, features_of
from ort_rknpu.compiler.rewriting import Context
from ort_rknpu.errors import MISFITS, ModelError
from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.model import Model
from ort_rknpu.rules.build import Refusal, refused_nodes, refused_rows
from ort_rknpu.rules.clause import Clause, Placement
from ort_rknpu.rules.measured import place
from ort_rknpu.targets.socs import Target

Rows = dict[tuple[Op, ...], CompiledOp]
"""Rows by the ops fused into them, as they are on the NPU; targets of one rewritten graph share them."""


def compile_model(model: Model, targets: Sequence[Target]) -> list[Compilation]:
    """One prediction per target, in order. Targets that the same rewrites apply to share one rewritten graph.

    Raises:
        ModelError: a node lacks an input, attribute or dimension that its operator has.
    """
    folded = model.graph.copy()
    FOLD.call(folded, Context(folded))
    runs: list[tuple[Context, Rows]] = []
    # the richest first: a run serves every target that lacks only what made no difference to this model
    for features in sorted({features_of(target) for target in targets}, key=lambda f: (-len(f), sorted(f))):
        if not any(context.serves(features) for context, _ in runs):
            context = Context(folded.copy(), features, model.opset)
            for stage in STAGES[1:]:
                stage.call(context.graph, context)
            runs.append((context, {}))
    result = []
    for target in targets:
        features = features_of(target)
        context, known = next(run for run in runs if run[0].serves(features))
        try:
            refusals = [*refused_nodes(folded, model.opset, target), *refused_rows(context.graph.ops, target)]
            result.append(_place(context.graph, target, _build(refusals), known))
        except ModelError:
            raise
        except MISFITS as error:
            raise ModelError(f"a node of the model does not fit its operator ({error})") from error
    return result


def _build(refusals: Sequence[Refusal]) -> Build:
    nodes: dict[int, tuple[Clause, ...]] = {}
    for refusal in refusals:
        for index in sorted(refusal.op.origins) if refusal.op is not None else ():
            nodes[index] = (*nodes.get(index, ()), refusal.clause)
    return Build(not refusals, tuple(dict.fromkeys(refusal.clause for refusal in refusals)), nodes)


def _place(graph: Graph, target: Target, build: Build, known: Rows) -> Compilation:
    """Places every op of a rewritten graph and builds the layer table."""
    placements: dict[Op, Placement] = {}

    def placed(op: Op) -> Placement:
        found = placements.get(op)
        if found is None:
            try:
                found = placements[op] = place(op, target)
            except MISFITS as error:
                raise ModelError(f"node {op.name!r} ({op.op_type}) does not fit its operator ({error})") from error
        return found

    rows = []
    for head, chain in fuse_rows(graph, target, placed).items():
        row = known.get(chain)
        if row is None:
            row = known[chain] = _row(chain)
        placement = placed(head)
        if placement != _ON_NPU:
            row = replace(row, device=placement.device, clauses=placement.clauses)
        rows.append(row)
    return Compilation(target, tuple(rows), build)


_ON_NPU = Placement("npu")


def _row(chain: tuple[Op, ...]) -> CompiledOp:
    head, last = chain[0], chain[-1]
    read = [v for op in chain for v in op.inputs if v is None or all(v is not o for c in chain for o in c.outputs)]
    origins = frozenset().union(*(op.origins for op in chain))
    return CompiledOp(
        op=row_name(chain),
        device="npu",
        inputs=tuple("" if v is None else v.name for v in read),
        outputs=tuple(v.name for v in last.outputs),
        input_shapes=tuple(_shape(v) for v in read),
        output_shapes=tuple(_shape(v) for v in last.outputs),
        attributes=dict(head.attributes),
        origins=origins,
        inserted=not origins,
    )


def _shape(value: Value | None) -> tuple[int, ...] | None:
    return None if value is None else value.static_shape
