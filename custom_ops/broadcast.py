"""Broadcast rules of element-wise operators, each a function of two shapes.

A dimension is a size, the name of a symbolic size, or None where nothing is known. Every rule returns the output
shape, or what keeps the shapes apart. Two dimensions with the same name are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Dim = int | str | None
Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class Mismatch:
    """One reason why two shapes do not go together.

    Attributes:
        limit: which requirement: ``rank``, ``sizes``, ``axis`` or ``execution``.
        actual: what the shapes are.
        allowed: what would pass.
        certain: False where an unknown dimension decides.
    """

    limit: str
    actual: str
    allowed: str
    certain: bool = True


@dataclass(frozen=True)
class Broadcast:
    """The output shape of a rule, None where there is none, and why."""

    shape: Shape | None
    mismatches: tuple[Mismatch, ...] = ()


def show(shape: Sequence[Dim]) -> str:
    """A shape as text, for example ``(2, N, ?)``."""
    dims = ["?" if dim is None else str(dim) for dim in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def same_shape(a: Sequence[Dim], b: Sequence[Dim]) -> Broadcast:
    """No broadcasting: same rank, same sizes (OpenVINO ``none``, DirectML descriptors)."""
    both = f"{show(a)} and {show(b)}"
    if len(a) != len(b):
        return Broadcast(
            None, (Mismatch("rank", f"{len(a)} and {len(b)}", "equal ranks"), Mismatch("sizes", both, "equal sizes"))
        )
    if any(_differ(x, y) for x, y in zip(a, b)):
        return Broadcast(None, (Mismatch("sizes", both, "equal sizes"),))
    if any(x is None or x != y for x, y in zip(a, b)):
        return Broadcast(None, (Mismatch("sizes", both, "equal sizes", certain=False),))
    return Broadcast(tuple(a))


def equal_rank(a: Sequence[Dim], b: Sequence[Dim]) -> Broadcast:
    """Same rank, and per dimension equal or one of them 1 (TensorRT)."""
    if len(a) != len(b):
        return Broadcast(None, (Mismatch("rank", f"{len(a)} and {len(b)}", "equal ranks"),))
    return _both_ways(a, b, a, b)


def numpy(a: Sequence[Dim], b: Sequence[Dim]) -> Broadcast:
    """Aligned at the last dimension, missing dimensions 1, per dimension equal or one of them 1."""
    rank = max(len(a), len(b))
    return _both_ways(_pad(a, rank), _pad(b, rank), a, b)


def pdpd(a: Sequence[Dim], b: Sequence[Dim], axis: int = -1) -> Broadcast:
    """B onto A by the OpenVINO specification; A never grows.

    B without its trailing ones is a contiguous run of A's dimensions from ``axis`` on, each of them equal or 1 in B.
    ``axis`` -1 stands for rank(A) - rank(B); a scalar B goes with any A.
    """
    if axis < -1:
        return Broadcast(None, (Mismatch("axis", str(axis), "-1 or more"),))
    if len(b) > len(a):
        return Broadcast(None, (_rank_onto(a, b),))
    start = len(a) - len(b) if axis == -1 else axis
    run = list(b)
    while run and run[-1] == 1:
        run.pop()
    if not run:
        return Broadcast(tuple(a))
    beyond = run[max(len(a) - start, 0) :]
    if beyond:
        certain = any(isinstance(dim, int) and dim != 1 for dim in beyond)
        return Broadcast(None, (_overhang(a, b, axis, len(a) - len(run), certain),))
    return _onto(a, run, start, f"{show(b)} onto {show(a)} from dimension {start}")


def pdpd_runtime(a: Sequence[Dim], b: Sequence[Dim], axis: int = -1) -> Broadcast:
    """B onto A as OpenVINO 2026.4.1 infers it and as its CPU plugin runs it.

    Unlike the specification, trailing ones of B count, a zero-length dimension of A takes no 1, a 1 in A takes a
    zero-length dimension, and a graph with an explicit axis runs right only where the axis says nothing: the plugin
    aligns B at A's last dimension before it applies the axis once more.
    """
    if axis < -1:
        return Broadcast(None, (Mismatch("axis", str(axis), "-1 or more"),))
    if len(b) > len(a):
        return Broadcast(None, (_rank_onto(a, b),))
    start = len(a) - len(b) if axis == -1 else axis
    if start + len(b) > len(a):
        return Broadcast(None, (_overhang(a, b, axis, len(a) - len(b)),))
    found = _onto(a, b, start, f"{show(b)} onto {show(a)} from dimension {start}", runtime=True)
    if axis == -1 or found.shape is None:
        return found
    if axis == 0 and (len(a) == len(b) or all(dim == 1 for dim in b)):
        return found
    return Broadcast(
        None, (Mismatch("execution", f"axis {axis} with {show(b)} onto {show(a)}", "axis -1, or B of A's rank"),)
    )


def _pad(shape: Sequence[Dim], rank: int) -> list[Dim]:
    return [1] * (rank - len(shape)) + list(shape)


def _differ(x: Dim, y: Dim) -> bool:
    return isinstance(x, int) and isinstance(y, int) and x != y


def _both_ways(a: Sequence[Dim], b: Sequence[Dim], shown_a: Sequence[Dim], shown_b: Sequence[Dim]) -> Broadcast:
    result: list[Dim] = []
    certain = True
    for x, y in zip(a, b):
        if x == 1:
            result.append(y)
        elif y == 1 or (x == y and x is not None):
            result.append(x)
        elif _differ(x, y):
            return Broadcast(None, (_sizes(shown_a, shown_b, True),))
        else:
            certain = False
    return Broadcast(tuple(result)) if certain else Broadcast(None, (_sizes(shown_a, shown_b, False),))


def _sizes(a: Sequence[Dim], b: Sequence[Dim], certain: bool) -> Mismatch:
    return Mismatch("sizes", f"{show(a)} and {show(b)}", "per dimension equal, or one of them 1", certain)


def _onto(a: Sequence[Dim], run: Sequence[Dim], start: int, actual: str, runtime: bool = False) -> Broadcast:
    result = list(a)
    certain = True
    for index, y in enumerate(run, start):
        x = a[index]
        if runtime and x == 1 and y == 0:
            result[index] = 0
        elif (y == 1 and not (runtime and x == 0)) or (x == y and x is not None):
            continue
        elif isinstance(x, int) and isinstance(y, int):
            return Broadcast(None, (Mismatch("sizes", actual, "each dimension of B equal to A's, or 1"),))
        else:
            certain = False
    if certain:
        return Broadcast(tuple(result))
    return Broadcast(None, (Mismatch("sizes", actual, "each dimension of B equal to A's, or 1", certain=False),))


def _rank_onto(a: Sequence[Dim], b: Sequence[Dim]) -> Mismatch:
    return Mismatch("rank", f"{show(b)} onto {show(a)}", "B of at most A's rank")


def _overhang(a: Sequence[Dim], b: Sequence[Dim], axis: int, highest: int, certain: bool = True) -> Mismatch:
    return Mismatch("axis", f"axis {axis} with {show(b)} onto {show(a)}", f"-1 or 0..{highest}", certain)
