"""Takes the weights out of a model, puts random ones in, and draws the random inputs that calibrate a build."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from ort_rknpu.errors import ToolkitError

# Inputs of an op that must be positive for the model to mean anything: variances and quantisation scales.
_POSITIVE_INPUTS = {"BatchNormalization": 4, "QuantizeLinear": 1, "DequantizeLinear": 1}


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
            for inner in attribute.graphs:
                yield from _graphs(inner)


STUB_SIZE = 256


def strip_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose large float and 8-bit tensors are external-data stubs without a file: shapes and dtypes stay.

    Tensors of up to ``STUB_SIZE`` elements, wider integers and uniform tensors (all 0, all 1) keep their numbers:
    a compiler's rewrites look at those.
    """
    stripped = onnx.ModelProto()
    stripped.CopyFrom(model)
    for graph in _graphs(stripped.graph):
        for tensor, _ in _tensors(graph):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            small = math.prod(tensor.dims) <= STUB_SIZE or not (dtype.kind == "f" or dtype.itemsize == 1)
            if small or tensor.data_location == onnx.TensorProto.EXTERNAL:
                continue
            values = onnx.numpy_helper.to_array(tensor)
            if (values == values.flat[0]).all():
                continue
            stub = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            stub.data_location = onnx.TensorProto.EXTERNAL
            stub.external_data.add(key="location", value="weights")
            tensor.CopyFrom(stub)
    return stripped


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Every tensor of a graph with the name of its value: initializers and the attributes of its nodes."""
    for tensor in graph.initializer:
        yield tensor, tensor.name
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t, node.output[0]


def _stubs(model: onnx.ModelProto, folder: Path) -> Iterator[tuple[onnx.TensorProto, bool]]:
    """Every tensor whose external data is not there, and whether it must be positive."""
    for graph in _graphs(model.graph):
        positive = {
            node.input[_POSITIVE_INPUTS[node.op_type]]
            for node in graph.node
            if node.op_type in _POSITIVE_INPUTS and len(node.input) > _POSITIVE_INPUTS[node.op_type]
        }
        for tensor, name in _tensors(graph):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
                if not (folder / location).is_file():
                    yield tensor, name in positive


def has_stubs(model: onnx.ModelProto, folder: Path) -> bool:
    """Whether some tensor of the model refers to external data that is not in ``folder``."""
    return next(_stubs(model, folder), None) is not None


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, positive: bool) -> np.ndarray:
    """Random values of a trained network's size: N(0, 1/fan-in) for floats, the whole range for 8-bit integers.

    ``positive`` draws from 0.5 to 1.5 instead. Wider integers are 0 or 1, and booleans either.
    """
    if dtype.kind in "iu" and dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    if positive:
        return rng.uniform(0.5, 1.5, shape).astype(dtype)
    fan_in = max(1, math.prod(shape[1:])) if len(shape) > 1 else 16
    return (rng.standard_normal(shape) / math.sqrt(fan_in)).astype(dtype)


def fill_stubs(model: onnx.ModelProto, folder: Path, seed: int = 0) -> onnx.ModelProto:
    """A self-contained copy: random numbers where external data is absent, its own where it is there.

    The same model and seed give the same numbers.
    """
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    rng = np.random.default_rng(seed)
    for tensor, positive in _stubs(filled, folder):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if dtype.kind not in "biuf":
            kind = onnx.TensorProto.DataType.Name(tensor.data_type)
            raise ToolkitError(
                f"the tensor {tensor.name!r} has no data and its type {kind} can not be filled at random"
            )
        values = random_tensor(rng, tuple(tensor.dims), dtype, positive)
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = values.tobytes()
    for graph in _graphs(filled.graph):
        for tensor, _ in _tensors(graph):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                del tensor.external_data[:]
                tensor.data_location = onnx.TensorProto.DEFAULT
    return filled


def random_inputs(
    model: onnx.ModelProto, seed: int = 0, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, np.ndarray]:
    """One random feed: N(0, 1) for floats, 0 or 1 for integers and booleans.

    Raises:
        ToolkitError: an input's shape is not known and ``shapes`` does not give it.
    """
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor_type = value.type.tensor_type
        shape = (shapes or {}).get(value.name) or tuple(dim.dim_value for dim in tensor_type.shape.dim)
        if any(dim <= 0 for dim in shape):
            raise ToolkitError(f"the input {value.name!r} has no fixed shape, which the toolkit needs; give one")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor_type.elem_type)
        if dtype.kind in "biu":
            feed[value.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            feed[value.name] = rng.standard_normal(shape).astype(dtype)
    return feed
