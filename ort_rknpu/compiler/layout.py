"""Algebra of layout chains: what a Transpose and a Reshape do to the dimensions, and how the two commute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Perm = tuple[int, ...]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Refinement:
    """The common refinement of two shapes of the same size: every dimension is a run of atoms.

    Attributes:
        sizes: the size of each atom, none is 1.
        before, after: per dimension of either shape the atoms it consists of, empty for a dimension of 1.
    """

    sizes: Sizes
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


def refine(before: Sizes, after: Sizes) -> Refinement | None:
    """Splits both shapes into common atoms, or None where their dimensions interleave (as 6x4 and 8x3 do)."""
    groups: tuple[list[list[int]], list[list[int]]] = ([[] for _ in before], [[] for _ in after])
    sizes: list[int] = []
    left, right = 0, 0
    rest_left = rest_right = 1
    while True:
        while rest_left == 1 and left < len(before):
            rest_left = before[left]
            left += 1
        while rest_right == 1 and right < len(after):
            rest_right = after[right]
            right += 1
        if rest_left == 1 or rest_right == 1:
            break
        atom = min(rest_left, rest_right)
        if atom == 0 or rest_left % atom or rest_right % atom:
            return None
        groups[0][left - 1].append(len(sizes))
        groups[1][right - 1].append(len(sizes))
        sizes.append(atom)
        rest_left //= atom
        rest_right //= atom
    if rest_left != rest_right:
        return None
    return Refinement(tuple(sizes), tuple(map(tuple, groups[0])), tuple(map(tuple, groups[1])))


def permute(shape: Sequence[int], perm: Sequence[int]) -> Sizes:
    """The shape after a Transpose."""
    return tuple(shape[axis] for axis in perm)


def compose(first: Sequence[int], second: Sequence[int]) -> Perm:
    """One Transpose for two in a row."""
    return tuple(first[axis] for axis in second)


def invert(perm: Sequence[int]) -> Perm:
    """The Transpose that undoes ``perm``."""
    result = [0] * len(perm)
    for position, axis in enumerate(perm):
        result[axis] = position
    return tuple(result)


def is_identity(perm: Sequence[int]) -> bool:
    """Whether the Transpose changes nothing."""
    return list(perm) == list(range(len(perm)))


def keeps_order(shape: Sequence[int], perm: Sequence[int]) -> bool:
    """Whether the Transpose only moves dimensions of 1, so that memory order stays."""
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved)


def only_moves_ones(before: Sizes, after: Sizes) -> bool:
    """Whether a Reshape only inserts, drops or moves dimensions of 1."""
    return [d for d in before if d != 1] == [d for d in after if d != 1]


def ones_as_transpose(before: Sizes, after: Sizes) -> Perm | None:
    """The Transpose equal to a Reshape of the same rank that only moves dimensions of 1, or None."""
    if len(before) != len(after) or not only_moves_ones(before, after):
        return None
    full = [axis for axis, size in enumerate(before) if size != 1]
    ones = [axis for axis, size in enumerate(before) if size == 1]
    return tuple(ones.pop(0) if size == 1 else full.pop(0) for size in after)


def chain_as_transpose(before: Sizes, order: Sequence[int], after: Sizes) -> Perm | None:
    """The Transpose from ``before`` to ``after`` that brings the non-1 axes into ``order``, 1s in sequence."""
    if len(before) != len(after):
        return None
    ones = [axis for axis, size in enumerate(before) if size == 1]
    full = list(order)
    if [before[axis] for axis in full] != [size for size in after if size != 1]:
        return None
    return tuple(ones.pop(0) if size == 1 else full.pop(0) for size in after)


def transpose_then_reshape(before: Sizes, perm: Sequence[int], after: Sizes) -> tuple[Sizes, Perm] | None:
    """Reshape first, then Transpose: the shape between the two and the permutation, or None if they do not commute.

    Dimensions of 1 in ``after`` keep their place; the others stand between the two in the order they have in
    ``before``.
    """
    parts = refine(permute(before, perm), after)
    if parts is None:
        return None
    position: dict[int, int] = {}
    undo = invert(perm)
    for axis in range(len(before)):
        for atom in parts.before[undo[axis]]:
            position[atom] = len(position)
    starts: list[tuple[int, int]] = []
    for axis, atoms in enumerate(parts.after):
        places = [position[atom] for atom in atoms]
        if places != list(range(places[0], places[0] + len(places))) if places else False:
            return None
        if places:
            starts.append((places[0], axis))
    order = [axis for _, axis in sorted(starts)]
    slots = sorted(order)
    middle = list(after)
    target = list(range(len(after)))
    for slot, axis in zip(slots, order, strict=True):
        middle[slot] = after[axis]
        target[axis] = slot
    return tuple(middle), tuple(target)


def reshape_then_transpose(before: Sizes, middle: Sizes, perm: Sequence[int]) -> tuple[Perm, Sizes] | None:
    """Transpose first, then Reshape: the permutation and the shape between the two, or None if they do not commute."""
    undone = transpose_then_reshape(permute(middle, perm), invert(perm), before)
    if undone is None:
        return None
    between, inverse = undone
    return invert(inverse), between


def same_dimension(before: Sizes, after: Sizes, axis: int) -> int | None:
    """Where dimension ``axis`` of ``before`` stands in ``after`` unchanged, or None."""
    parts = refine(before, after)
    if parts is None:
        return None
    if before[axis] == 1:
        candidates = [i for i, size in enumerate(after) if size == 1]
        return candidates[0] if axis not in candidates and candidates else (axis if axis in candidates else None)
    for place, atoms in enumerate(parts.after):
        if atoms == parts.before[axis]:
            return place
    return None
