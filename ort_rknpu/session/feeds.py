"""Input tensors for a model: random ones by seed, and a check of given ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import onnx
from onnx import helper

from ort_rknpu.errors import ModelError, OptionError

_DTYPES: dict[str, str] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class InputInfo(Protocol):
    """What ``InferenceSession.get_inputs()`` says about one input."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Sequence[int | str | None]: ...
    @property
    def type(self) -> str: ...


@dataclass(frozen=True)
class ModelInput:
    """An input as the file declares it."""

    name: str
    shape: Sequence[int | str | None]
    type: str


def input_infos(model: onnx.ModelProto) -> list[ModelInput]:
    """The inputs of a model, initializers left out, as ``get_inputs()`` of a session describes them."""
    constants = {tensor.name for tensor in model.graph.initializer}
    types = {helper.np_dtype_to_tensor_dtype(np.dtype(name)): key for key, name in _DTYPES.items() if name != "str"}
    result = []
    for value in model.graph.input:
        kind = value.type.tensor_type
        if value.name not in constants:
            dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]
            result.append(ModelInput(value.name, dims, types.get(kind.elem_type, "tensor(string)")))
    return result


def input_dtype(info: InputInfo) -> np.dtype:
    """The numpy dtype of an input.

    Raises:
        ModelError: the input is no tensor, or of a type numpy does not have.
    """
    name = _DTYPES.get(info.type)
    if name is None:
        raise ModelError(f"input {info.name!r} is a {info.type}; give it yourself")
    return np.dtype(name)


def random_feeds(
    inputs: Iterable[InputInfo], seed: int = 0, given: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Feeds for every input: what is ``given``, else random numbers.

    Floating inputs are standard normal, uint8 covers 0 to 255, other integers are 0 or 1 (valid indices and masks).
    A dimension that is not fixed takes the size that a given input has under the same name, else 1.

    Args:
        inputs: ``session.get_inputs()``.
        seed: the same seed gives the same numbers.
        given: tensors to use as they are.

    Raises:
        ModelError: ``given`` names an input the model does not have, or gives it in another shape or dtype.
    """
    infos = list(inputs)
    feeds = dict(given or {})
    check_feeds(infos, feeds, complete=False)
    sizes = {
        dim: size
        for info in infos
        if info.name in feeds
        for dim, size in zip(info.shape, feeds[info.name].shape)
        if isinstance(dim, str)
    }
    rng = np.random.default_rng(seed)
    for info in infos:
        dtype = input_dtype(info)
        shape = [dim if isinstance(dim, int) else sizes.get(dim or "", 1) for dim in info.shape]
        if info.name not in feeds:
            feeds[info.name] = _random(rng, shape, dtype)
    return feeds


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "U":
        return np.full(shape, "")
    return rng.integers(0, 256 if dtype == np.uint8 else 2, shape).astype(dtype)


def check_feeds(inputs: Sequence[InputInfo], feeds: Mapping[str, np.ndarray], *, complete: bool = True) -> None:
    """Checks names, shapes and dtypes of ``feeds``; with ``complete`` also that none is missing.

    Raises:
        ModelError: says which input is wrong, and what the model takes.
    """
    by_name = {info.name: info for info in inputs}
    for name, array in feeds.items():
        info = by_name.get(name)
        if info is None:
            raise ModelError(f"the model has no input {name!r}; it has {', '.join(by_name) or 'none'}")
        shape, dtype = np.shape(array), np.asarray(array).dtype
        fits = len(shape) == len(info.shape) and all(
            size == dim or not isinstance(dim, int) for size, dim in zip(shape, info.shape)
        )
        if not fits:
            raise ModelError(f"input {name!r} has the shape {list(shape)}; the model takes {list(info.shape)}")
        expected = input_dtype(info)
        if dtype != expected and not (dtype.kind in "UO" and expected.kind == "U"):
            raise ModelError(f"input {name!r} is {dtype}; the model takes {expected}")
    missing = [name for name in by_name if name not in feeds]
    if complete and missing:
        raise ModelError(f"input {missing[0]!r} is missing")


def read_inputs(entries: Iterable[str]) -> dict[str, np.ndarray]:
    """Tensors from ``NAME=FILE.npy`` as given on the command line.

    Raises:
        OptionError: an entry is not of that form.
        ModelError: a file cannot be read as an array.
    """
    feeds = {}
    for entry in entries:
        name, separator, path = entry.partition("=")
        if not (name and separator and path):
            raise OptionError(f"--input {entry!r} is not NAME=FILE.npy")
        try:
            loaded = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ModelError(f"cannot read input {name!r} from {path!r}: {error}") from error
        if not isinstance(loaded, np.ndarray):
            raise ModelError(f"input {name!r}: {path!r} is an archive; one array in a .npy file is needed")
        feeds[name] = loaded
    return feeds
