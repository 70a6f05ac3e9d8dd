"""Matrix multiplication and attention."""

from __future__ import annotations

import math
from typing import Any

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.facts import Values, base_values, dims, text


def matmul_values(op: Op) -> Values:
    """The contraction length ``k``, the batches of both operands, and ``c_type``.

    An exMatMul has A [b, k, 1, n] and B [b, k, 1, m]; MatMul and Gemm contract their inner axes (reading 43).
    """
    values = base_values(op)
    first, second = op.input(0), op.input(1)
    values["c_type"] = text(op.attr("c_type", "add"))
    if op.op_type == "exMatMul":
        values["k"] = values["channel"]
        values["batch_a"], values["batch_b"] = dims(first)[0], dims(second)[0]
        return values
    values["rank"] = _rank(first, second)
    values["k"] = _inner(op, first, second)
    values["batch_a"], values["batch_b"] = _batches(first, second)
    return values


def _rank(first: Value | None, second: Value | None) -> int | None:
    ranks = [None if value is None else value.rank for value in (first, second)]
    return None if None in ranks else max(rank for rank in ranks if rank is not None)


def _inner(op: Op, first: Value | None, second: Value | None) -> int | None:
    """The contraction length, from whichever operand tells it."""
    candidates: list[Any] = []
    if first is not None and first.shape:
        candidates.append(first.shape[0 if op.attr("transA", 0) and len(first.shape) == 2 else -1])
    if second is not None and second.shape:
        inner = -1 if len(second.shape) == 1 or (op.attr("transB", 0) and len(second.shape) == 2) else -2
        candidates.append(second.shape[inner])
    return next((dim for dim in candidates if isinstance(dim, int)), None)


def _batches(first: Value | None, second: Value | None) -> tuple[int | None, int | None]:
    """Both batches; where one operand has no batch axes the other's fold into its rows."""
    shapes = [None if value is None else value.shape for value in (first, second)]
    if any(shape is not None and len(shape) <= 2 for shape in shapes):
        return 1, 1
    sizes: list[int | None] = []
    for shape in shapes:
        outer = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape[:-2]]
        sizes.append(None if outer is None or None in outer else math.prod(dim for dim in outer if dim is not None))
    return sizes[0], sizes[1]


def attention_values(op: Op) -> Values:
    """Channels of query and value, which are [batch, channel, 1, length]."""
    values = base_values(op)
    values["query_channel"] = values["channel"]
    values["value_channel"] = dims(op.input(2))[1]
    return values
