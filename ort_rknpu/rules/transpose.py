"""Transpose: the table of permutations, also asked by ops that need a transpose inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ort_rknpu.graph import Op
from ort_rknpu.rules.attributes import malformed
from ort_rknpu.rules.conditions import condition_findings
from ort_rknpu.rules.facts import Values, axes_of_rank, base_values, dims, on_chip_dtype, shape_text
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit


def transpose_values(op: Op) -> Values:
    """``perm`` over four axes as a string such as ``0312``."""
    values = base_values(op)
    values["perm"] = permutation(op)
    return values


def permutation(op: Op) -> str | None:
    """The permutation among four axes; None where the rank is not known or above 4."""
    value = op.input(0)
    rank = None if value is None else value.rank
    perm = op.attr("perm")
    rank = len(perm) if rank is None and perm is not None else rank
    axes = axes_of_rank(rank)
    if rank is None or axes is None:
        return None
    if perm is not None and sorted(perm) != list(range(rank)):
        raise malformed(op, "perm", f"must be a permutation of {rank} axes")
    wrapped = [0, 1, 2, 3]
    for axis, source in zip(axes, perm if perm is not None else range(rank - 1, -1, -1)):
        wrapped[axis] = axes[source]
    return "".join(map(str, wrapped))


def perm_table(case: Case, limit: Limit) -> Iterator[Finding]:
    """The permutation is listed and the input's shape meets its conditions."""
    value = case.op.input(0)
    perm = case.values["perm"]
    if value is None or perm is None:
        yield Finding(f"input {shape_text(value)}", "a permutation of up to four axes", unknown=True)
        return
    dtype = on_chip_dtype(value, case.target.precision)
    yield from table_findings(limit, perm, dims(value), dtype)


def table_findings(limit: Limit, perm: str, shape: Sequence[int | None], dtype: str | None) -> Iterator[Finding]:
    """Every condition of the table that ``perm`` of a [n1, c1, h1, w1] tensor violates."""
    table = limit.params["table"]
    row = table[perm]
    if row is None:
        listed = ", ".join(key for key, conditions in table.items() if conditions is not None)
        hint = "use a listed permutation"
        yield Finding(f"perm {perm}", f"perm {listed}", hint, text="the permutation must be listed")
        return
    values = dict(zip(("n1", "c1", "h1", "w1"), shape))
    conditions = row["int8" if dtype == "int8" else "16bit"]
    yield from condition_findings(conditions, values, f"perm {perm}", f"_{perm}")


def swap_passes(case: Case, limit: Limit) -> Iterator[Finding]:
    """The transpose before and the one behind the op both pass the Transpose table (reading 19)."""
    value = case.op.input(0)
    perm = limit.params["perm"]
    table = case.rules.ops["Transpose"].limit("perm")
    if value is None:
        return
    shape = dims(value)
    dtype = on_chip_dtype(value, case.target.precision)
    swapped = [shape[int(axis)] for axis in perm]
    for place, dimensions in (("before", shape), ("behind", swapped)):
        for finding in table_findings(table, perm, dimensions, dtype):
            yield Finding(
                finding.actual,
                finding.allowed,
                finding.hint,
                finding.unknown,
                f"_{place}{finding.suffix.removeprefix('_' + perm)}",
                f"the transpose {perm} {place} it must pass the Transpose table: {finding.text}",
            )
