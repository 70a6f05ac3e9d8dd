"""Reads a model from a path, bytes or a proto without touching its external data; reads single tensors."""

from __future__ import annotations

import math
import os

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import external_data_helper, numpy_helper

from ort_rknpu.errors import ModelError

MAX_CONST_ELEMENTS = 1 << 18
"""Constants above this size are known by shape and dtype only: no rule looks into a large weight."""

_DTYPES = {
    number: {"FLOAT": "float32", "DOUBLE": "float64", "UNDEFINED": None}.get(name, name.lower())
    for name, number in onnx.TensorProto.DataType.items()
}

_NUMBERS = {name: number for number, name in _DTYPES.items() if name is not None}


def dtype_name(elem_type: int) -> str | None:
    """The numpy-style name of an ONNX element type, None for undefined or unknown ones."""
    return _DTYPES.get(elem_type)


def dtype_number(name: str | None) -> int | None:
    """The ONNX element type of a numpy-style name, None where there is none."""
    return None if name is None else _NUMBERS.get(name)


def read_model(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, str | None]:
    """The model's proto and its path, if it came from a file.

    Raises:
        ModelError: unreadable, not an ONNX model, or without a graph or an operator set.
    """
    path: str | None = None
    if isinstance(source, onnx.ModelProto):
        proto = source
    elif isinstance(source, (bytes, bytearray, memoryview)):
        proto = _parse(bytes(source), "the given bytes")
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
        proto = _parse(data, path)
    else:
        raise ModelError(f"a model is a path, bytes or onnx.ModelProto, not {type(source).__name__}")
    where = path or "the model"
    if not proto.HasField("graph"):
        raise ModelError(f"{where} is no ONNX model: it holds no graph")
    if not proto.opset_import:
        raise ModelError(f"{where} imports no operator set")
    return proto, path


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(f"{where} is no ONNX model: not a readable protobuf file") from error


def read_tensor(tensor: onnx.TensorProto, base: str | None) -> np.ndarray | None:
    """The tensor's data, or None where it is absent or above :data:`MAX_CONST_ELEMENTS`.

    Args:
        base: folder that external data is relative to, None where the model is no file.

    Raises:
        ModelError: the data does not fit the tensor's shape and dtype.
    """
    count = math.prod(tensor.dims)
    if count > MAX_CONST_ELEMENTS or tensor.data_type not in _DTYPES:
        return None
    try:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return _read_external(tensor, base)
        if count and not _has_data(tensor):
            return None
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"tensor {tensor.name!r} is malformed: {error}") from error


def _has_data(tensor: onnx.TensorProto) -> bool:
    return bool(
        tensor.HasField("raw_data")
        or tensor.float_data
        or tensor.int32_data
        or tensor.int64_data
        or tensor.double_data
        or tensor.uint64_data
        or tensor.string_data
    )


def _read_external(tensor: onnx.TensorProto, base: str | None) -> np.ndarray | None:
    if base is None:
        return None
    try:
        local = onnx.TensorProto()
        local.CopyFrom(tensor)
        external_data_helper.load_external_data_for_tensor(local, base)
        local.data_location = onnx.TensorProto.DEFAULT
        return numpy_helper.to_array(local)
    except (OSError, ValueError, onnx.checker.ValidationError):
        return None
