"""The named values that measured limits read off a compiled op. None is "not known"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ort_rknpu.graph import Op, Value
from ort_rknpu.targets.socs import Target

_INTEGERS = frozenset({"int64", "int32", "int16", "uint64", "uint32", "uint16", "bool"})
_PACK = {
    ("rk3566_rk3568", "fp16"): 4,
    ("rk3566_rk3568", "int8"): 8,
    ("rv1103_rv1106", "int8"): 16,
    ("rv1103b_rv1106b", "int8"): 16,
}


def pack(target: Target) -> int:
    """Channels that the NPU keeps side by side: the C2 of its NC1HWC2 layout."""
    return _PACK.get((target.group, target.precision), 8 if target.precision == "fp16" else 16)


def is_integer(value: Value | None) -> bool:
    """Whether the tensor keeps an integer dtype on the chip, whatever the precision."""
    return value is not None and value.dtype in _INTEGERS


def four(value: Value | None) -> tuple[int | None, int | None, int | None, int | None]:
    """Batch, channel, height and width of a tensor of rank 4; all None for any other or an unknown shape."""
    shape = None if value is None else value.static_shape
    return (None, None, None, None) if shape is None or len(shape) != 4 else (shape[0], shape[1], shape[2], shape[3])


def constant(value: Value | None) -> list[Any] | None:
    """A constant's elements, or None."""
    return None if value is None or value.const is None else np.asarray(value.const).reshape(-1).tolist()


def is_uniform(value: Value) -> bool:
    """Whether a constant is known to hold one number, several times."""
    if value.const is None or value.const.size < 2:
        return False
    return bool(np.all(value.const == value.const.reshape(-1)[0]))


class CompiledValues(Mapping[str, Any]):
    """The values of one compiled op on one target, each worked out when it is first read."""

    def __init__(self, op: Op, target: Target) -> None:
        self.op = op
        self.target = target
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = _VALUES[name](self.op, self.target)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_VALUES)

    def __len__(self) -> int:
        return len(_VALUES)


def _dim(index: int, axis: int, out: bool = False) -> Callable[[Op, Target], int | None]:
    def value(op: Op, target: Target) -> int | None:
        return four(op.outputs[index] if out else op.input(index))[axis]

    return value


def _rank(index: int) -> Callable[[Op, Target], int | None]:
    def value(op: Op, target: Target) -> int | None:
        tensor = op.input(index)
        return 0 if tensor is None else tensor.rank

    return value


def _constant_input(index: int) -> Callable[[Op, Target], bool]:
    def value(op: Op, target: Target) -> bool:
        tensor = op.input(index)
        return tensor is not None and tensor.constant

    return value


def _axis(op: Op, target: Target) -> int | None:
    first = op.input(0)
    axis, rank = op.attr("axis"), None if first is None else first.rank
    if rank is None:
        return None
    default = {"exSoftmax13": -1, "Hardmax": -1, "LogSoftmax": -1}.get(op.op_type, 0)
    return int(default if axis is None else axis) % rank if rank else 0


def _side(name: str, axis: int, default: int) -> Callable[[Op, Target], int]:
    def value(op: Op, target: Target) -> int:
        items = op.attr(name)
        return default if not items else int(items[axis if len(items) > 1 else 0])

    return value


def _pads(op: Op) -> list[int] | None:
    """Begin and end pads of a pooling op: as stated, or what ``auto_pad`` makes of the shapes."""
    mode = op.attr("auto_pad", "NOTSET")
    mode = mode.decode() if isinstance(mode, bytes) else mode
    kernel = op.attr("kernel_shape") or []
    if mode in ("NOTSET", ""):
        return list(op.attr("pads") or [0] * (2 * len(kernel)))
    if mode == "VALID":
        return [0] * (2 * len(kernel))
    first = op.input(0)
    shape = None if first is None else first.static_shape
    if shape is None:
        return None
    strides = op.attr("strides") or [1] * len(kernel)
    totals = []
    for size, k, s in zip(shape[2:], kernel, strides):
        totals.append(max((math.ceil(size / s) - 1) * s + k - size, 0))
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]


def _pad_total(op: Op, target: Target) -> int | None:
    pads = _pads(op)
    return None if pads is None else sum(pads)


def _ceil_changes(op: Op, target: Target) -> bool | None:
    """Whether ``ceil_mode`` gives another output size than rounding down would."""
    if not op.attr("ceil_mode", 0):
        return False
    shape, pads = four(op.input(0)), _pads(op)
    if pads is None or None in shape or len(pads) != 4:
        return None
    kernel, strides = op.attr("kernel_shape"), op.attr("strides") or [1, 1]
    dilations = op.attr("dilations") or [1, 1]
    rests = []
    for axis in (0, 1):
        size = (shape[2 + axis] or 0) + pads[axis] + pads[2 + axis] - dilations[axis] * (kernel[axis] - 1) - 1
        rests.append(size % strides[axis])
    return any(rests)


def _exponent(op: Op, target: Target) -> float | str | None:
    """The exponent where it is one constant number, ``varies`` where it is not, None where its data is absent."""
    value = op.input(1)
    if value is None or not value.constant:
        return "varies"
    items = constant(value)
    if items is None:
        return None if value.static_shape is None or math.prod(value.static_shape) == 1 else "varies"
    return float(items[0]) if len(items) == 1 else "varies"


def _steps(op: Op, target: Target) -> dict[int, int] | None:
    """Axis -> step of a Slice, constant starts, ends and steps only."""
    first = op.input(0)
    rank = None if first is None else first.rank
    if rank is None:
        return None
    starts = constant(op.input(1)) if len(op.inputs) > 1 else op.attr("starts")
    if starts is None:
        return None
    axes = constant(op.input(3)) if op.input(3) is not None else op.attr("axes")
    steps = constant(op.input(4)) if op.input(4) is not None else [1] * len(starts)
    if steps is None or (axes is None and op.input(3) is not None):
        return None
    axes = list(range(len(starts))) if axes is None else axes
    return {int(axis) % rank: int(step) for axis, step in zip(axes, steps)}


def _step(axis: int) -> Callable[[Op, Target], int | None]:
    def value(op: Op, target: Target) -> int | None:
        steps = _steps(op, target)
        return None if steps is None else steps.get(axis, 1)

    return value


def _pad_side(axis: int) -> Callable[[Op, Target], int | None]:
    def value(op: Op, target: Target) -> int | None:
        pads = constant(op.input(1)) if op.input(1) is not None else op.attr("pads")
        rank = None if op.input(0) is None else op.inputs[0].rank  # type: ignore[union-attr]
        if pads is None or rank is None or len(pads) != 2 * rank or axis >= rank:
            return None
        return int(pads[axis]) + int(pads[axis + rank])

    return value


def _pad_channel_front(op: Op, target: Target) -> int | None:
    pads = constant(op.input(1)) if op.input(1) is not None else op.attr("pads")
    return None if pads is None or len(pads) != 8 else int(pads[1])


def _repeat_channel(op: Op, target: Target) -> int | None:
    repeats = constant(op.input(1))
    return None if repeats is None else int(repeats[1]) if len(repeats) == 4 else 1


def _number_per_batch(op: Op, target: Target) -> bool:
    """Whether a constant operand has several batches of one number each."""
    shapes = [value.static_shape for value in op.inputs if value is not None and value.constant]
    return any(shape is not None and len(shape) == 4 and shape[0] > 1 == math.prod(shape[1:]) for shape in shapes)


def _narrow_input(op: Op, target: Target) -> bool:
    """Whether the op reads a model input too narrow for the packing of the input; a Conv has limits of its own."""
    if op.op_type == "Conv":
        return False
    for value in op.inputs:
        batch, channel, height, width = four(value)
        if channel is None or width is None or not _is_fed(value):
            continue
        if (channel < 3 and width % 16 == 0) or (channel < 8 and batch == height == width == 1):
            return True
    return False


def _is_fed(value: Value | None) -> bool:
    return value is not None and value.producer is None and not value.constant


def _text_attribute(name: str, default: str) -> Callable[[Op, Target], str]:
    def value(op: Op, target: Target) -> str:
        found = op.attr(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)

    return value


_coordinates = _text_attribute("coordinate_transformation_mode", "half_pixel")


def _scale(axis: int) -> Callable[[Op, Target], tuple[bool, float] | None]:
    """Whether a Resize scales the axis by an integer up or down, and the ratio (of size - 1 where corners align)."""

    def value(op: Op, target: Target) -> tuple[bool, float] | None:
        before, after = four(op.input(0))[axis], four(op.outputs[0])[axis]
        if before is None or after is None:
            return None
        if _coordinates(op, target) == "align_corners":
            before, after = before - 1, after - 1
        if before == after or before == 0 or after == 0:
            return True, 1.0
        return after % before == 0 or before % after == 0, after / before

    return value


def _integer_scale(axis: int) -> Callable[[Op, Target], bool | None]:
    def value(op: Op, target: Target) -> bool | None:
        found = _scale(axis)(op, target)
        return None if found is None else found[0]

    return value


def _scale_size(axis: int) -> Callable[[Op, Target], float | None]:
    def value(op: Op, target: Target) -> float | None:
        found = _scale(axis)(op, target)
        return None if found is None else found[1]

    return value


def _repeated_axes(op: Op, target: Target) -> int | None:
    repeats = constant(op.input(1))
    return None if repeats is None else sum(int(r) != 1 for r in repeats)


def _perm(op: Op, target: Target) -> str | None:
    perm = op.attr("perm")
    if perm is None:
        rank = None if op.input(0) is None else op.inputs[0].rank  # type: ignore[union-attr]
        if rank is None:
            return None
        perm = list(range(rank))[::-1]
    return "".join(map(str, perm))


def _axes(op: Op, target: Target) -> str | None:
    """The axes of a reduction as a string of digits, all of them where none are given."""
    first = op.input(0)
    rank = None if first is None else first.rank
    if rank is None:
        return None
    given = op.input(1)
    axes = op.attr("axes") if given is None else constant(given)
    if axes is None:
        return None if given is not None else "".join(map(str, range(rank)))
    return "".join(map(str, sorted(int(axis) % rank for axis in axes)))


def _hw(out: bool) -> Callable[[Op, Target], int | None]:
    def value(op: Op, target: Target) -> int | None:
        _, _, height, width = four(op.outputs[0] if out else op.input(0))
        return None if height is None or width is None else height * width

    return value


def _fixed(index: int) -> Callable[[Op, Target], bool]:
    """Whether an input is absent or known when the model is converted."""

    def value(op: Op, target: Target) -> bool:
        tensor = op.input(index)
        return tensor is None or tensor.constant

    return value


def _uniform(index: int) -> Callable[[Op, Target], bool]:
    def value(op: Op, target: Target) -> bool:
        tensor = op.input(index)
        return tensor is not None and is_uniform(tensor)

    return value


def _stated_axes(op: Op, target: Target) -> str | None:
    """The axes of a reduction as the model states them, negative ones included; None where they are not constant."""
    axes = op.attr("axes") if op.input(1) is None else constant(op.input(1))
    return None if axes is None else ",".join(str(int(axis)) for axis in axes)


def _readers(op: Op, target: Target) -> int:
    return sum(len(value.uses) for value in op.outputs)


def _producer(op: Op, target: Target) -> str:
    first = op.input(0)
    return "" if first is None or first.producer is None else first.producer.op_type


def _number_attribute(name: str, default: int) -> Callable[[Op, Target], int]:
    def value(op: Op, target: Target) -> int:
        return int(op.attr(name, default))

    return value


def _max_dilation(op: Op, target: Target) -> int:
    return max(op.attr("dilations") or [1])


def _highest_rank(op: Op, target: Target) -> int | None:
    ranks = [value.rank for value in (op.input(0), *op.outputs) if value is not None]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if known else None


def _cast_to(op: Op, target: Target) -> str | None:
    return op.outputs[0].dtype


def _dtype(op: Op, target: Target) -> str | None:
    first = op.input(0)
    return None if first is None else first.dtype


_VALUES: dict[str, Callable[[Op, Target], Any]] = {
    "axes": _axes,
    "axis": _axis,
    "batch": _dim(0, 0),
    "channel": _dim(0, 1),
    "height": _dim(0, 2),
    "width": _dim(0, 3),
    "height_2nd": _dim(1, 2),
    "width_2nd": _dim(1, 3),
    "out_batch": _dim(0, 0, out=True),
    "out_channel": _dim(0, 1, out=True),
    "out_height": _dim(0, 2, out=True),
    "out_width": _dim(0, 3, out=True),
    "pixels": _hw(False),
    "out_pixels": _hw(True),
    "rank": _rank(0),
    "rank_2nd": _rank(1),
    "rank_3rd": _rank(2),
    "constant_1st": _constant_input(0),
    "constant_2nd": _constant_input(1),
    "inputs": lambda op, target: len(op.inputs),
    "outputs": lambda op, target: len(op.outputs),
    "pack": lambda op, target: pack(target),
    "integer": lambda op, target: is_integer(op.input(0)),
    "dtype": _dtype,
    "to": _cast_to,
    "kernel_h": _side("kernel_shape", 0, 1),
    "kernel_w": _side("kernel_shape", 1, 1),
    "stride_h": _side("strides", 0, 1),
    "stride_w": _side("strides", 1, 1),
    "pad_total": _pad_total,
    "count_include_pad": lambda op, target: int(op.attr("count_include_pad", 0)),
    "ceil_changes": _ceil_changes,
    "exponent": _exponent,
    "step_batch": _step(0),
    "step_channel": _step(1),
    "step_height": _step(2),
    "step_width": _step(3),
    "pad_batch": _pad_side(0),
    "pad_channel": _pad_side(1),
    "pad_height": _pad_side(2),
    "pad_width": _pad_side(3),
    "pad_channel_front": _pad_channel_front,
    "repeat_channel": _repeat_channel,
    "narrow_input": _narrow_input,
    "number_per_batch": _number_per_batch,
    "bias_given": lambda op, target: op.input(3) is not None,
    "pad_mode": _text_attribute("mode", "constant"),
    "resize_mode": _text_attribute("mode", "nearest"),
    "coordinates": _coordinates,
    "integer_scale_h": _integer_scale(2),
    "integer_scale_w": _integer_scale(3),
    "scale_h": _scale_size(2),
    "scale_w": _scale_size(3),
    "repeated_axes": _repeated_axes,
    "perm": _perm,
    "fixed_1st": _fixed(0),
    "fixed_2nd": _fixed(1),
    "fixed_3rd": _fixed(2),
    "fixed_4th": _fixed(3),
    "fixed_5th": _fixed(4),
    "highest_rank": _highest_rank,
    "stated_axes": _stated_axes,
    "keepdims": _number_attribute("keepdims", 1),
    "training_mode": _number_attribute("training_mode", 0),
    "readers": _readers,
    "producer": _producer,
    "auto_pad": _text_attribute("auto_pad", "NOTSET"),
    "dilation": _max_dilation,
    "uniform_2nd": _uniform(1),
    "epsilon_given": lambda op, target: op.attr("epsilon") is not None,
}
