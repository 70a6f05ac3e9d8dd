"""``extract``: one partition of a model as a model of its own."""

from __future__ import annotations

import os
from pathlib import Path

import onnx

from custom_ops.loading import Source, read_model, save_model
from ort_rknpu.session.assignment import assign
from ort_rknpu.session.options import ProviderOptions


def extract(
    model: Source,
    partition: int,
    out: str | os.PathLike[str] | None = None,
    *,
    soc: str,
    precision: str | None = None,
    toolkit: str = "2.3.2",
    rules: str = "measured",
) -> onnx.ModelProto:
    """The nodes of one partition, its boundary tensors as inputs and outputs; ex nodes stay as they are.

    Args:
        model: path, bytes or ModelProto.
        partition: its number, as ``check`` lists it.
        out: where to write it, with the external data it needs beside it.
        soc, precision, toolkit, rules: as for ``check``.

    Raises:
        ModelError: the model cannot be used, or the file not be written.
        OptionError: no such partition, or an unknown option.
    """
    given = {"soc": soc, "toolkit": toolkit, "rules": rules, **({"precision": precision} if precision else {})}
    found = assign(model, ProviderOptions.parse(given)).extract(partition)
    if out is not None:
        save_model(found, Path(out), read_model(model)[1])
    return found
