"""Reshape on SoCs that cannot rearrange memory freely: when the NPU's packed layout permits it.

The NPU keeps a tensor of rank 4 packed as NC1HWC2 (C2 channels side by side, :func:`~ort_rknpu.rules.compiled.pack`).
Tensors of any other rank, and those that a CPU op writes or reads, lie plain in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.compiled import pack
from ort_rknpu.targets.socs import Target

OnCpu = Callable[[Op], bool]
"""Whether a neighbouring op is placed on the CPU."""


@dataclass(frozen=True)
class Relayout:
    """A violated condition: what the op has and what would pass."""

    actual: str
    allowed: str
    hint: str = ""


Form = Callable[[Op, Target, Mapping[str, Any], OnCpu], Iterator[Relayout]]


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _shapes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    first = op.input(0)
    before = None if first is None else first.static_shape
    after = op.outputs[0].static_shape
    return None if before is None or after is None else (before, after)


def _plain_before(op: Op, shape: tuple[int, ...], on_cpu: OnCpu) -> bool:
    value = op.inputs[0]
    producer = None if value is None else value.producer
    return len(shape) != 4 or (producer is not None and on_cpu(producer))


def _plain_after(op: Op, shape: tuple[int, ...], on_cpu: OnCpu) -> bool:
    value = op.outputs[0]
    readers = value.consumers()
    return len(shape) != 4 or (bool(readers) and all(on_cpu(reader) for reader in readers))


def _from_model_input(value: Value | None) -> bool:
    return value is not None and value.producer is None and not value.constant


def _same_packed(before: tuple[int, ...], after: tuple[int, ...], size: int) -> bool:
    """Whether two packed tensors have the same bytes: pixels stay, and channels move by whole packs."""
    n1, c1, h1, w1 = before
    n2, c2, h2, w2 = after
    if h1 * w1 != h2 * w2 or n1 * c1 != n2 * c2:
        return False
    return c1 == c2 or (c1 % size == 0 and c2 % size == 0)


def same_bytes(op: Op, target: Target, params: Mapping[str, Any], on_cpu: OnCpu) -> Iterator[Relayout]:
    """The op must not move a byte: plain to plain, packed to an equal packing, or whole packs of single pixels."""
    shapes = _shapes(op)
    if shapes is None:
        return
    before, after = shapes
    size = pack(target)
    if len(before) == 4 and _from_model_input(op.inputs[0]):
        yield Relayout(f"{_text(before)} straight from the model input", "no Reshape of a rank-4 model input")
        return
    plain = _plain_before(op, before, on_cpu), _plain_after(op, after, on_cpu)
    if plain == (True, True):
        return
    if plain == (False, False):
        if not _same_packed(before, after, size):
            yield Relayout(
                f"{_text(before)} -> {_text(after)}",
                f"the same height*width, and channels kept or multiples of {size} on both sides",
            )
        return
    packed = after if plain[0] else before
    if packed[2] * packed[3] != 1 or packed[1] % size:
        yield Relayout(
            f"{_text(before)} -> {_text(after)}", f"height*width 1 and channels a multiple of {size} on the rank-4 side"
        )


def aligned_pixels(op: Op, target: Target, params: Mapping[str, Any], on_cpu: OnCpu) -> Iterator[Relayout]:
    """Each packed side must have height*width (or, for single pixels, channels) a multiple of the pack."""
    shapes = _shapes(op)
    if shapes is None:
        return
    before, after = shapes
    size = pack(target)
    plain = _plain_before(op, before, on_cpu), _plain_after(op, after, on_cpu)
    if plain == (True, True):
        return
    if len(before) == len(after) == 4 and math.prod(before[2:]) == math.prod(after[2:]):
        return
    for shape, is_plain in zip(shapes, plain):
        if is_plain:
            continue
        pixels = shape[2] * shape[3]
        if pixels % size and (pixels != 1 or shape[1] % size):
            what = f"{shape[1]} channels of one pixel" if pixels == 1 else f"height*width = {pixels}"
            yield Relayout(f"{_text(before)} -> {_text(after)}: {what}", f"a multiple of {size}")
            return


FORMS: dict[str, Form] = {"same_bytes": same_bytes, "aligned_pixels": aligned_pixels}
