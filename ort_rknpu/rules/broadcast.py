"""Element-wise ops and Expand: which operand may be broadcast along which axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.facts import Values, axes_of_rank, base_values, is_scalar, output, shape_text, size
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit

_LETTERS = "bchw"


def elementwise_values(op: Op) -> Values:
    """``operands`` and how many of them are constant."""
    values = base_values(op)
    operands = [value for value in op.inputs if value is not None]
    values["rank"] = _rank(op)
    values["operands"] = len(operands)
    values["constant_operands"] = sum(value.constant for value in operands)
    return values


def _rank(op: Op) -> int | None:
    ranks = [value.rank for value in (*op.inputs, *op.outputs) if value is not None]
    known = [rank for rank in ranks if rank is not None]
    highest = max(known, default=None)
    return None if len(known) < len(ranks) and (highest is None or highest <= 4) else highest


def broadcast(case: Case, limit: Limit) -> Iterator[Finding]:
    """Every operand has the output's shape, is a constant of one element, or fits one of the patterns."""
    whole = output(case.op)
    patterns = _patterns(case, limit)
    indices = limit.params.get("inputs", range(1 if case.rule.name == "Expand" else len(case.op.inputs)))
    for index in indices:
        operand = case.op.input(index)
        if operand is None or (limit.params.get("scalar") and operand.constant and is_scalar(operand)):
            continue
        fits = _fits(operand, whole, patterns)
        if fits is True:
            continue
        yield Finding(
            f"{shape_text(operand)} into {shape_text(whole)}",
            _allowed(patterns, bool(limit.params.get("scalar"))),
            _hint(operand, whole),
            unknown=fits is None,
            text=f"operand {index + 1} must not be broadcast in another way than listed",
        )


def _patterns(case: Case, limit: Limit) -> Sequence[Mapping[str, Any]]:
    source = limit.params.get("patterns_of")
    if source is None:
        return limit.params["patterns"]
    return case.rules.ops[source].limit("broadcast").params["patterns"]


def aligned(operand: Value, rank: int) -> tuple[int | None, ...] | None:
    """The operand as [b, c, h, w] when it meets a tensor of that rank: ONNX aligns on the right."""
    axes = axes_of_rank(rank)
    if operand.shape is None or axes is None or len(operand.shape) > rank:
        return None
    result: list[int | None] = [1, 1, 1, 1]
    for axis, dim in zip(axes[rank - len(operand.shape) :], operand.shape):
        result[axis] = dim if isinstance(dim, int) else None
    return tuple(result)


def _fits(operand: Value, result: Value, patterns: Sequence[Mapping[str, Any]]) -> bool | None:
    if operand.shape is None or result.shape is None:
        return None
    if operand.shape == result.shape and None not in result.shape:
        return True
    whole = aligned(result, len(result.shape))
    part = aligned(operand, len(result.shape))
    if whole is None or part is None:
        return None
    same = _all(a == b if a is not None and b is not None else None for a, b in zip(part, whole))
    answers = [same, *(_fits_pattern(part, whole, pattern) for pattern in patterns)]
    if True in answers:
        return True
    return None if None in answers else False


def _fits_pattern(part: Sequence[int | None], whole: Sequence[int | None], pattern: Mapping[str, Any]) -> bool | None:
    answers: list[bool | None] = []
    for letter, given, dim, wanted in zip(_LETTERS, pattern["from"], part, whole):
        if given == "1":
            answers.append(None if dim is None else dim == 1)
            if letter in pattern:
                low, high = pattern[letter]
                answers.append(None if wanted is None else low <= wanted <= high)
        else:
            answers.append(None if dim is None or wanted is None else dim == wanted)
    return _all(answers)


def _all(answers: Any) -> bool | None:
    items = list(answers)
    if False in items:
        return False
    return None if None in items else True


def _allowed(patterns: Sequence[Mapping[str, Any]], scalar: bool) -> str:
    forms = [f"[{', '.join(pattern['from'])}]" for pattern in patterns]
    ranges = {f"{letter} {p[letter][0]}..{p[letter][1]}" for p in patterns for letter in "hw" if letter in p}
    limits = f" with {', '.join(sorted(ranges))}" if ranges else ""
    return ", ".join(["the output's shape", *(["a constant of one element"] if scalar else []), *forms]) + limits


def _hint(operand: Value, result: Value) -> str:
    if size(operand) == 1:
        return "make it a constant of one element"
    return f"expand it to {shape_text(result)} beforehand, or reshape both so that one pattern fits"
