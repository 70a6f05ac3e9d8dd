"""Shapes of graph inputs set by the caller, and the symbolic dimensions that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from ort_rknpu.errors import OptionError
from ort_rknpu.graph import Dim, Shape


@dataclass(frozen=True)
class Overrides:
    """What the caller set: input name -> shape, symbolic dimension -> size."""

    inputs: Mapping[str, Shape] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.inputs)


def parse_shapes(shapes: Mapping[str, Sequence[Dim]] | Sequence[str] | None) -> dict[str, Shape]:
    """``{"x": (1, 3)}`` or ``["x=1,3"]`` as a mapping of tuples.

    Raises:
        OptionError: an entry that is not ``NAME=SIZE,SIZE,...`` with positive sizes or symbol names.
    """
    if shapes is None:
        return {}
    if isinstance(shapes, str):
        shapes = [shapes]
    result: dict[str, Shape] = {}
    if isinstance(shapes, Mapping):
        items = [(name, list(dims)) for name, dims in shapes.items()]
    else:
        items = []
        for text in shapes:
            # names of tensors may hold "=", sizes cannot
            name, equals, sizes = text.rpartition("=")
            if not equals or not name:
                raise OptionError(f"a shape is written NAME=1,3,640,640, not {text!r}")
            items.append((name, [s.strip() for s in sizes.split(",")] if sizes.strip() else []))
    for name, dims in items:
        result[name] = tuple(_dim(d, name) for d in dims)
    return result


def _dim(value: object, name: str) -> Dim:
    if value is None:
        return None
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        if not value.isidentifier():
            raise OptionError(f"shape of {name!r}: {value!r} is neither a size nor the name of a dimension")
        return value
    try:
        size = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise OptionError(f"shape of {name!r}: {value!r} is no size") from None
    if size < 0:
        raise OptionError(f"shape of {name!r}: size {size} is negative")
    return size


def apply_shapes(graph: onnx.GraphProto, shapes: Mapping[str, Shape]) -> Overrides:
    """Checks ``shapes`` against the graph's inputs and collects the sizes of symbolic dimensions.

    Raises:
        OptionError: no such input, another rank, or two sizes for one symbolic dimension.
    """
    if not shapes:
        return Overrides()
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in initializers}
    symbols: dict[str, int] = {}
    for name, shape in shapes.items():
        value = inputs.get(name)
        if value is None:
            raise OptionError(f"the model has no input {name!r}; it has {', '.join(inputs) or 'none'}")
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            continue
        dims = value.type.tensor_type.shape.dim
        if len(dims) != len(shape):
            raise OptionError(f"input {name!r} has {len(dims)} dimensions, the given shape {len(shape)}")
        for dim, size in zip(dims, shape):
            if dim.dim_param and isinstance(size, int) and symbols.setdefault(dim.dim_param, size) != size:
                raise OptionError(f"dimension {dim.dim_param!r} is given as {symbols[dim.dim_param]} and as {size}")
    return Overrides(dict(shapes), symbols)
