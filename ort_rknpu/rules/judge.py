"""Judges an op by measured limits: every violated clause, and those that cannot be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules.clause import Clause
from ort_rknpu.rules.compiled import CompiledValues
from ort_rknpu.targets.measurements import MeasuredLimit
from ort_rknpu.targets.socs import Target


@dataclass(frozen=True)
class Violation:
    """What a named predicate found: what the op has and what would pass."""

    actual: str
    allowed: str
    hint: str = ""


Form = Callable[[Op, Target, Mapping[str, Any]], Iterator[Violation]]
"""A named predicate with the numbers of its limit: yields nothing where the op passes."""


def judge(
    op: Op, target: Target, limit: MeasuredLimit, forms: Mapping[str, Form], text: str
) -> Iterator[tuple[Clause, bool]]:
    """Clauses of one limit: violated (True) or not decidable (False). ``text`` has a place for ``{allowed}``."""
    if not limit.applies_to(target):
        return
    values = CompiledValues(op, target)
    if limit.when is not None and limit.when(values) is False:
        return
    clause_id = f"{target.soc.name}.{op.op_type}.{limit.id}"
    if limit.never:
        actual = limit.when.describe(values)[0] if limit.when is not None else f"{target.soc.name} {target.precision}"
        never = f"Such {'an' if op.op_type[0] in 'AEIOUe' else 'a'} {op.op_type} never runs on the NPU here."
        yield Clause(clause_id, never, actual, limit.allowed or "another op", limit.source, limit.hint), True
        return
    if limit.require is None:
        for found in forms[limit.form](op, target, limit.params):
            allowed = limit.allowed or found.allowed
            hint = limit.hint or found.hint
            yield Clause(clause_id, text.format(allowed=allowed), found.actual, allowed, limit.source, hint), True
        return
    held = limit.require(values)
    if held is None:
        missing = [name for name in limit.require.names if values[name] is None]
        allowed = limit.allowed or limit.require.source
        unknown = f"{op.op_type} needs {', '.join(missing)} to be known."
        yield Clause(clause_id, unknown, "not known", allowed, limit.source), False
    elif not held:
        actual, allowed = limit.require.describe(values)
        allowed = limit.allowed or allowed
        yield Clause(clause_id, text.format(allowed=allowed), actual, allowed, limit.source, limit.hint), True
