"""A small graph builder for the sample models: ONNX nodes as exporters write them, random weights from a fixed seed.

Shapes come from ONNX's own inference, node by node, so that a builder can read ``x.shape`` while it goes along.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IR_VERSIONS = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9}


@dataclass(frozen=True)
class Tensor:
    """A value of the graph under construction."""

    name: str
    shape: tuple[int, ...]
    dtype: int = TensorProto.FLOAT


class Net:
    """Builds one model.

    Args:
        name: the graph's name.
        opset: 11 to 19; decides between attributes and inputs where ONNX moved them, and between
            LayerNormalization and its decomposition.
        seed: of the random weights.
        fold_bn: batch normalisation is folded into the convolution before it, as torch exports a model in
            evaluation mode; otherwise it stays a node of its own.
        constants: small constants as ``Constant`` nodes (torch) or as initializers (other exporters).
    """

    def __init__(
        self, name: str, opset: int = 13, seed: int = 0, *, fold_bn: bool = True, constants: str = "node"
    ) -> None:
        self.name = name
        self.opset = opset
        self.fold_bn = fold_bn
        self.constants = constants
        self.rng = np.random.default_rng([seed, len(name), *name.encode()])
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._path: list[str] = []
        self._names: Counter[str] = Counter()
        self._data: dict[str, TensorProto] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes added inside carry ``name`` in their path."""
        self._path.append(name)
        yield
        self._path.pop()

    def _unique(self, name: str) -> str:
        count = self._names[name]
        self._names[name] += 1
        return f"{name}_{count}" if count else name

    def input(self, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> Tensor:
        """A graph input."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return Tensor(name, tuple(shape), dtype)

    def output(self, *tensors: Tensor) -> None:
        """Marks values as graph outputs."""
        self.outputs += [helper.make_tensor_value_info(t.name, t.dtype, t.shape) for t in tensors]

    def array(self, value: np.ndarray, name: str = "weight") -> Tensor:
        """An initializer that holds ``value``."""
        # Never ``weight_1``: the vendor's toolkit makes such names itself, and mixes the two up.
        unique = ".".join([*self._path, str(len(self.initializers)), name])
        proto = numpy_helper.from_array(np.ascontiguousarray(value), unique)
        self.initializers.append(proto)
        if value.size <= 64:
            self._data[unique] = proto
        return Tensor(unique, value.shape, proto.data_type)

    def weight(self, *shape: int, name: str = "weight", scale: float | None = None) -> Tensor:
        """A random float initializer, N(0, 1/fan-in) unless ``scale`` gives the deviation."""
        fan_in = max(1, math.prod(shape[1:])) if len(shape) > 1 else 16
        values = self.rng.standard_normal(shape) * (scale or fan_in**-0.5)
        return self.array(values.astype(np.float32), name)

    def positive(self, *shape: int, name: str = "weight") -> Tensor:
        """A random initializer between 0.5 and 1.5: scales and variances."""
        return self.array(self.rng.uniform(0.5, 1.5, shape).astype(np.float32), name)

    def const(self, value: Any, dtype: Any = None) -> Tensor:
        """A constant: floats as float32, integers as int64, unless ``dtype`` says otherwise."""
        array = np.asarray(value, dtype)
        if dtype is None:
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        if self.constants == "initializer":
            return self.array(array, "const")
        proto = numpy_helper.from_array(array)
        node = self._node("Constant", [], {"value": proto}, 1)
        self._data[node.output[0]] = proto
        return Tensor(node.output[0], array.shape, proto.data_type)

    def _node(self, op: str, inputs: list[str], attributes: dict[str, Any], outputs: int) -> onnx.NodeProto:
        name = self._unique("/".join(["", *self._path, op]))
        node = helper.make_node(op, inputs, [f"{name}_output_{i}" for i in range(outputs)], name, **attributes)
        self.nodes.append(node)
        return node

    def add(self, op: str, *inputs: Tensor | None, outputs: int = 1, **attributes: Any) -> Any:
        """One node; returns its output, or a tuple of them where there are several.

        Raises:
            ValueError: ONNX can not infer a fixed shape for an output.
        """
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = self._node(op, [t.name if t else "" for t in inputs], attributes, outputs)
        types = {t.name: helper.make_tensor_type_proto(t.dtype, t.shape) for t in inputs if t}
        data = {t.name: self._data[t.name] for t in inputs if t and t.name in self._data}
        schema = onnx.defs.get_schema(op, self.opset)
        found = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )
        results = []
        for name in node.output:
            tensor_type = found[name].tensor_type if name in found else None
            dims = [dim.dim_value for dim in tensor_type.shape.dim] if tensor_type else [-1]
            if (
                tensor_type is None
                or not tensor_type.HasField("shape")
                or any(not dim.HasField("dim_value") for dim in tensor_type.shape.dim)
            ):
                raise ValueError(f"{self.name}: no shape for {op} {name} of {[t.shape for t in inputs if t]}")
            results.append(Tensor(name, tuple(dims), tensor_type.elem_type))
        return results[0] if outputs == 1 else tuple(results)

    def build(self) -> onnx.ModelProto:
        """The finished model, checked."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSIONS[self.opset],
            producer_name="ort-rknpu models",
        )
        onnx.checker.check_model(model)
        return model

    # Elementary ops in the form that fits the opset.

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.add("Reshape", x, self.const(list(shape)))

    def view(self, x: Tensor, *shape: int) -> Tensor:
        """A reshape whose first dimension an exporter with symbolic batch reads from the input at run time."""
        size = self.add("Gather", self.add("Shape", x), self.const(0), axis=0)
        parts = [self.unsqueeze(size, 0), *(self.const([dim]) for dim in shape[1:])]
        target = self.add("Concat", *parts, axis=0)
        self._data[target.name] = numpy_helper.from_array(np.array(shape, np.int64), target.name)
        return self.add("Reshape", x, target)

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        return self.add("Transpose", x, perm=list(perm))

    def flatten(self, x: Tensor, axis: int = 1) -> Tensor:
        return self.add("Flatten", x, axis=axis)

    def _axes(self, op: str, x: Tensor, axes: Sequence[int], since: int, **attributes: Any) -> Tensor:
        if self.opset >= since:
            return self.add(op, x, self.const(list(axes)), **attributes)
        return self.add(op, x, axes=list(axes), **attributes)

    def unsqueeze(self, x: Tensor, *axes: int) -> Tensor:
        return self._axes("Unsqueeze", x, axes, 13)

    def squeeze(self, x: Tensor, *axes: int) -> Tensor:
        return self._axes("Squeeze", x, axes, 13)

    def reduce(self, op: str, x: Tensor, *axes: int, keepdims: bool = True) -> Tensor:
        """``op`` is ReduceMean, ReduceMax ...; their axes became an input with opset 18, ReduceSum's with 13."""
        return self._axes(op, x, axes, 13 if op == "ReduceSum" else 18, keepdims=int(keepdims))

    def mean(self, x: Tensor, *axes: int, keepdims: bool = True) -> Tensor:
        return self.reduce("ReduceMean", x, *axes, keepdims=keepdims)

    def split(self, x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
        if self.opset >= 13:
            return self.add("Split", x, self.const(list(sizes)), outputs=len(sizes), axis=axis)
        return self.add("Split", x, outputs=len(sizes), axis=axis, split=list(sizes))

    def slice(self, x: Tensor, start: int, end: int, axis: int, step: int = 1) -> Tensor:
        values = ([start], [end], [axis], [step])
        return self.add("Slice", x, *(self.const(value) for value in values))

    def concat(self, *tensors: Tensor, axis: int = 1) -> Tensor:
        return self.add("Concat", *tensors, axis=axis)

    def select(self, x: Tensor, index: int, axis: int) -> Tensor:
        """One position of an axis, which goes away."""
        return self.add("Gather", x, self.const(index), axis=axis)

    def pad(self, x: Tensor, pads: Sequence[int], mode: str = "constant") -> Tensor:
        value = self.const(0.0) if mode == "constant" else None
        inputs = [x, self.const(list(pads))] + ([value] if value else [])
        return self.add("Pad", *inputs, mode=mode)

    def plus(self, x: Tensor, y: Tensor | float) -> Tensor:
        return self.add("Add", x, y if isinstance(y, Tensor) else self.const(float(y)))

    def minus(self, x: Tensor, y: Tensor | float) -> Tensor:
        return self.add("Sub", x, y if isinstance(y, Tensor) else self.const(float(y)))

    def times(self, x: Tensor, y: Tensor | float) -> Tensor:
        return self.add("Mul", x, y if isinstance(y, Tensor) else self.const(float(y)))

    def over(self, x: Tensor, y: Tensor | float) -> Tensor:
        return self.add("Div", x, y if isinstance(y, Tensor) else self.const(float(y)))

    def clip(self, x: Tensor, low: float, high: float) -> Tensor:
        return self.add("Clip", x, self.const(low), self.const(high))

    def softmax(self, x: Tensor, axis: int = -1) -> Tensor:
        return self.add("Softmax", x, axis=axis)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.add("MatMul", x, y)

    def resize(
        self,
        x: Tensor,
        *,
        scale: Sequence[float] | None = None,
        size: Sequence[int] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
    ) -> Tensor:
        """Resize of the spatial axes by scales or to a size, with the attributes torch writes."""
        if mode == "nearest":
            attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            attributes = {"coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel"}
        empty = None if self.opset >= 13 else self.const(np.zeros(0, np.float32))
        if scale is not None:
            return self.add("Resize", x, empty, self.const([1.0, 1.0, *scale]), mode=mode, **attributes)
        assert size is not None
        return self.add("Resize", x, empty, empty, self.const([*x.shape[:2], *size]), mode=mode, **attributes)
