"""What a lowering writes into: the nodes and constants that take one ex node's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from custom_ops.shapes import Shape

Scalar = int | float
_NUMPY: dict[int, type] = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64}


@dataclass
class Names:
    """Unique names of one model."""

    taken: set[str]

    def new(self, wanted: str) -> str:
        """``wanted``, with a number where it is taken."""
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name


@dataclass
class Builder:
    """The replacement of one node, in the making.

    Attributes:
        prefix: name of the node replaced; every new node and value is named below it.
        opset: version of the default domain, 13 or higher.
        element_type: FLOAT or DOUBLE, the type computed in.
        shapes: shape of every input of the contract, None where omitted or unknown.
        attributes: the node's attributes with defaults filled in.
        after_transpose: whether input 0 comes out of a Transpose, so that another one costs nothing.
        constants: which inputs are initializers.
    """

    prefix: str
    names: Names
    opset: int
    element_type: int
    shapes: Sequence[Shape | None]
    attributes: Mapping[str, Any]
    after_transpose: bool = False
    constants: frozenset[int] = frozenset()
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def call(self, op_type: str, *inputs: str, domain: str = "", outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns the name of its output, or a list of names for several."""
        names = [self.names.new(f"{self.prefix}/{op_type}_output_{i}") for i in range(outputs)]
        name = self.names.new(f"{self.prefix}/{op_type}")
        self.nodes.append(onnx.helper.make_node(op_type, inputs, names, name=name, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def tensor(self, array: npt.ArrayLike, what: str) -> str:
        """Adds a constant as it is; returns its name."""
        name = self.names.new(f"{self.prefix}/{what}")
        self.initializers.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def scalar(self, value: Scalar, what: str = "constant") -> str:
        """Adds a rank-0 constant of the computed type."""
        return self.tensor(np.asarray(value, _NUMPY[self.element_type]), what)

    def lowest(self) -> str:
        """Adds the lowest finite number of the computed type."""
        return self.scalar(float(np.finfo(_NUMPY[self.element_type]).min), "lowest")

    def fill(self, shape: Sequence[int], value: Scalar, what: str = "constant") -> str:
        """Adds a constant of the computed type with one value throughout."""
        return self.tensor(np.full(shape, value, _NUMPY[self.element_type]), what)

    def ints(self, values: Iterable[int], what: str) -> str:
        """Adds an int64 constant of rank 1."""
        return self.tensor(np.asarray(list(values), np.int64), what)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """Reshapes; 0 keeps the dimension of ``x`` at that place, -1 takes the rest."""
        return self.call("Reshape", x, self.ints(shape, "shape"))

    def squeeze(self, x: str, *axes: int) -> str:
        """Drops axes of size 1."""
        return self.call("Squeeze", x, self.ints(axes, "axes"))

    def unsqueeze(self, x: str, *axes: int) -> str:
        """Inserts axes of size 1."""
        return self.call("Unsqueeze", x, self.ints(axes, "axes"))

    def transpose(self, x: str, *perm: int) -> str:
        """Permutes axes."""
        return self.call("Transpose", x, perm=perm)

    def reduce(self, op_type: str, x: str, axes: Sequence[int]) -> str:
        """A reduction that keeps its axes with size 1; axes are an attribute below opset 18, an input from then on."""
        if op_type == "ReduceSum" or self.opset >= 18:
            return self.call(op_type, x, self.ints(axes, "axes"), keepdims=1)
        return self.call(op_type, x, axes=list(axes), keepdims=1)

    def in_float32(self, compute: Callable[[str], str], x: str) -> str:
        """``compute(x)`` in float32, for operators that ONNX Runtime has no float64 kernel of."""
        if self.element_type == onnx.TensorProto.FLOAT:
            return compute(x)
        narrow = self.call("Cast", x, to=onnx.TensorProto.FLOAT)
        return self.call("Cast", compute(narrow), to=self.element_type)
