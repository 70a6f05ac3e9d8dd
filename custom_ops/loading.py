"""Models from a path, bytes or a ModelProto, with one clear error for what is no model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor, uses_external_data

from custom_ops.errors import ModelError

Source = str | os.PathLike[str] | bytes | onnx.ModelProto
EMBED_LIMIT = (1 << 31) - (1 << 26)
"""External data up to this many bytes is taken into the model: a protobuf message ends at 2 GiB."""


def read_model(source: Source) -> tuple[onnx.ModelProto, Path | None]:
    """The model without its external data, and the folder that data is relative to (None unless a path was given).

    A ModelProto is returned as it is, not copied.

    Raises:
        ModelError: no such file, not an ONNX model, or one without graph or opset.
    """
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        model, what = source, "the given ModelProto"
    else:
        if isinstance(source, (bytes, bytearray, memoryview)):
            data, what = bytes(source), f"the given {len(source)} bytes"
        else:
            what = f"{os.fspath(source)!r}"
            folder = Path(source).resolve().parent
            try:
                data = Path(source).read_bytes()
            except OSError as error:
                raise ModelError(f"cannot read {what}: {error.strerror or error}") from error
        if not data:
            raise ModelError(f"{what} is empty")
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except DecodeError as error:
            raise ModelError(f"{what} is no ONNX model, or truncated") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ModelError(f"{what} holds no graph: no ONNX model, or truncated")
    if not model.opset_import:
        raise ModelError(f"{what} declares no opset: truncated")
    return model, folder


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """``graph`` and every graph inside its nodes, outer ones first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for inner in attribute.graphs:
                    yield from graphs(inner)


def external_tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Every initializer whose data lies in another file."""
    return [t for graph in graphs(model.graph) for t in graph.initializer if uses_external_data(t)]


def external_size(tensors: list[onnx.TensorProto], folder: Path) -> int:
    """Bytes of external data.

    Raises:
        ModelError: a data file is missing.
    """
    total = 0
    for tensor in tensors:
        info = ExternalDataInfo(tensor)
        path = folder / info.location
        if not path.is_file():
            raise ModelError(f"external data of {tensor.name!r} is missing: no file {str(path)!r}")
        total += info.length if info.length else path.stat().st_size
    return total


def embed_external_data(model: onnx.ModelProto, folder: Path) -> bool:
    """Takes external data into the model, unless it is too much for one protobuf message.

    Returns:
        Whether no external data is left.

    Raises:
        ModelError: a data file is missing.
    """
    tensors = external_tensors(model)
    if external_size(tensors, folder) + model.ByteSize() > EMBED_LIMIT:
        return False
    for tensor in tensors:
        load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    return True


def save_model(model: onnx.ModelProto, path: Path, folder: Path | None) -> None:
    """Writes a model, and beside it what external data it still has in ``folder``: linked, or copied.

    Raises:
        ModelError: a file cannot be written.
    """
    try:
        path.write_bytes(model.SerializeToString())
        for location in sorted({ExternalDataInfo(t).location for t in external_tensors(model)}):
            if folder is not None and folder != path.resolve().parent:
                _link(folder / location, path.parent / location)
    except OSError as error:
        raise ModelError(f"cannot write {str(path)!r}: {error}") from error


def _link(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
