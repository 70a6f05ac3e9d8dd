"""Reshape on SoCs that cannot rearrange memory freely: when the NPU's packed layout permits it.

The NPU keeps a tensor of rank 4 packed as NC1HWC2 (C2 channels side by side, :func:`~ort_rknpu.rules.compiled.pack`).
Tensors of any other rank, and those that a CPU op writes or reads, lie plain in row-major order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.compiled import pack
from ort_rknpu.rules.judge import Violation
from ort_rknpu.targets.socs import Target

OnCpu = Callable[[Op], bool]
"""Whether a neighbouring op is placed on the CPU."""


LayoutForm = Callable[[Op, Target, Mapping[str, Any], OnCpu], Iterator[Violation]]


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _shapes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    first = op.input(0)
    before = None if first is None else first.static_shape
    after = op.outputs[0].static_shape
    return None if before is None or after is None else (before, after)


def _plain_before(op: Op, shape: tuple[int, ...], params: Mapping[str, Any], on_cpu: OnCpu) -> bool:
    value = op.inputs[0]
    producer = None if value is None else value.producer
    return len(shape) != 4 or (producer is not None and _plain_op(producer, params, on_cpu))


def _plain_after(op: Op, shape: tuple[int, ...], params: Mapping[str, Any], on_cpu: OnCpu) -> bool:
    readers = op.outputs[0].consumers()
    return len(shape) != 4 or (bool(readers) and all(_plain_op(reader, params, on_cpu) for reader in readers))


def _plain_op(op: Op, params: Mapping[str, Any], on_cpu: OnCpu) -> bool:
    return op.op_type not in params["packed_on_cpu"] and on_cpu(op)


def _from_model_input(value: Value | None) -> bool:
    return value is not None and value.producer is None and not value.constant


def _same_packed(before: tuple[int, ...], after: tuple[int, ...], size: int, padded: bool) -> bool:
    """Whether two packed tensors have the same bytes: pixels stay, and channels move by whole packs.

    With ``padded`` the compiler knows that a part of a pack stays what it is where batch and channels stay.
    """
    n1, c1, h1, w1 = before
    n2, c2, h2, w2 = after
    if before == after or (padded and before[:2] == after[:2]):
        return h1 * w1 == h2 * w2
    return h1 * w1 == h2 * w2 and n1 * c1 == n2 * c2 and c1 % size == 0 and c2 % size == 0


def same_bytes(op: Op, target: Target, params: Mapping[str, Any], on_cpu: OnCpu) -> Iterator[Violation]:
    """The op must not move a byte.

    It does not from plain to plain, from packed to packed with the same pixels and whole packs of channels, or where
    single pixels of whole packs look the same either way. Coming from a CPU op, a tensor that keeps batch and channels
    is packed before the Reshape. A model input of rank 4 is packed only where it keeps them too and an op that computes
    reads it, no Transpose. The CPU kernels named in ``packed_on_cpu`` work on packed tensors.
    """
    shapes = _shapes(op)
    if shapes is None:
        return
    before, after = shapes
    size = pack(target)
    what = f"{_text(before)} -> {_text(after)}"
    plain_before = _plain_before(op, before, params, on_cpu)
    plain_after = _plain_after(op, after, params, on_cpu)
    if plain_before and plain_after:
        return
    readers = op.outputs[0].consumers()
    moved = len(after) != 4 or before[:2] != after[:2] or any(reader.op_type == "Transpose" for reader in readers)
    if len(before) == 4 and _from_model_input(op.inputs[0]) and (plain_after or not readers or moved):
        yield Violation(f"{what} straight from the model input", "a rank-4 model input that the NPU reads first")
    elif not plain_before and not plain_after:
        if not _same_packed(before, after, size, params.get("padded", False)):
            yield Violation(what, f"the same height*width, and channels that are multiples of {size} on both sides")
    else:
        packed = after if plain_before else before
        if packed[2] * packed[3] == 1 and packed[1] % size == 0:
            return
        if plain_before and len(before) == 4 and before[:2] == after[:2] and after[1] % size == 0:
            return
        yield Violation(what, f"height*width 1 and channels a multiple of {size} on the side of the NPU")


def aligned_pixels(op: Op, target: Target, params: Mapping[str, Any], on_cpu: OnCpu) -> Iterator[Violation]:
    """What the rearranging engine can do.

    Between two packed tensors: width kept, or height*width kept with channels in whole packs. Else each packed side
    needs height*width (or the channels of single pixels) to be a multiple of the pack. The output has at most
    ``pixels`` pixels. The ops named in ``transparent`` take either layout: one between two Reshapes stays plain.
    """
    shapes = _shapes(op)
    if shapes is None:
        return
    before, after = shapes
    size = pack(target)
    transparent = frozenset(params["transparent"])
    plain_before = _plain_before(op, before, params, on_cpu) or _transparent_producer(op, transparent)
    plain_after = _plain_after(op, after, params, on_cpu) or _transparent_reader(op, transparent)
    if plain_before and plain_after:
        return
    limit = params["pixels"][target.precision]
    what = f"{_text(before)} -> {_text(after)}"
    if not plain_after and after[2] * after[3] > limit:
        yield Violation(f"{what}: height*width = {after[2] * after[3]}", f"an output of at most {limit} pixels")
        return
    if len(before) == len(after) == 4 and _kept(before, after, size):
        return
    single = plain_before and after[0] == 1 and after[2] * after[3] == 1
    if not plain_before and not _aligned(before, size):
        yield Violation(f"{what}: {_measure(before)}", f"a multiple of {size}, or the same width on both sides")
    elif not plain_after and not single and not _aligned(after, size):
        yield Violation(f"{what}: {_measure(after)}", f"a multiple of {size}, or the same width on both sides")


def _kept(before: tuple[int, ...], after: tuple[int, ...], size: int) -> bool:
    if before[3] == after[3]:
        return True
    return before[2] * before[3] == after[2] * after[3] and before[1] % size == 0 and after[1] % size == 0


def _aligned(shape: tuple[int, ...], size: int) -> bool:
    pixels = shape[2] * shape[3]
    return pixels % size == 0 or (pixels == 1 and shape[1] % size == 0)


def _measure(shape: tuple[int, ...]) -> str:
    pixels = shape[2] * shape[3]
    return f"{shape[1]} channels of one pixel" if pixels == 1 else f"height*width = {pixels}"


def _transparent_producer(op: Op, transparent: frozenset[str]) -> bool:
    """Whether the producer takes either layout and reads a Reshape of a plain tensor."""
    value = op.inputs[0]
    producer = None if value is None else value.producer
    if producer is None or producer.op_type not in transparent or value is None or len(value.uses) != 1:
        return False
    source = producer.input(0)
    reshape = None if source is None else source.producer
    first = None if reshape is None or reshape.op_type != "Reshape" else reshape.input(0)
    return first is not None and first.rank != 4


def _transparent_reader(op: Op, transparent: frozenset[str]) -> bool:
    """Whether the only reader takes either layout and feeds nothing but Reshapes to plain tensors."""
    readers = op.outputs[0].consumers()
    if len(readers) != 1 or readers[0].op_type not in transparent:
        return False
    following = readers[0].outputs[0].consumers()
    return bool(following) and all(reader.op_type == "Reshape" and reader.outputs[0].rank != 4 for reader in following)


FORMS: dict[str, LayoutForm] = {"same_bytes": same_bytes, "aligned_pixels": aligned_pixels}
