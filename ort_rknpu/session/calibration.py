"""Calibration data for int8: from a folder or an iterable, every sample checked before the model sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import CalibrationDataReader
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ort_rknpu.errors import CalibrationError, ModelError
from ort_rknpu.session.feeds import InputInfo, check_feeds

Feeds = Mapping[str, np.ndarray]
Calibration = str | os.PathLike[str] | Iterable[Feeds]


def calibration_samples(data: Calibration, inputs: Sequence[InputInfo]) -> Iterable[Feeds]:
    """The samples in ``data``.

    A folder holds one ``npz`` a sample with every input by name; or ``npy`` files, one a sample, where the model has a
    single input; or a folder of ``npy`` files for every input, whose sorted files belong together.

    Raises:
        CalibrationError: the folder does not exist, holds no data, or the numbers of files differ.
    """
    if not isinstance(data, (str, os.PathLike)):
        return data
    folder = Path(data)
    if not folder.is_dir():
        raise CalibrationError(f"calibration: {str(folder)!r} is no folder")
    bundles = sorted(folder.glob("*.npz"))
    if bundles:
        return _Files([{"": path} for path in bundles])
    if len(inputs) == 1 and (single := sorted(folder.glob("*.npy"))):
        return _Files([{inputs[0].name: path} for path in single])
    columns = {info.name: sorted((folder / info.name).glob("*.npy")) for info in inputs}
    counts = {name: len(paths) for name, paths in columns.items()}
    if not any(counts.values()):
        raise CalibrationError(
            f"calibration: {str(folder)!r} holds no npz and no npy files"
            + (f", nor folders of them called {', '.join(columns)}" if len(inputs) > 1 else "")
        )
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise CalibrationError(f"calibration: {str(folder)!r} holds {listed}; as many of each are needed")
    return _Files([dict(zip(columns, row)) for row in zip(*columns.values())])


class _Files:
    """Samples read from files when they are needed."""

    def __init__(self, rows: Sequence[Mapping[str, Path]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Feeds]:
        for row in self._rows:
            sample: dict[str, np.ndarray] = {}
            for name, path in row.items():
                try:
                    loaded = np.load(path, allow_pickle=False)
                except (OSError, ValueError, EOFError) as error:
                    raise CalibrationError(f"calibration: cannot read {str(path)!r}: {error}") from error
                sample.update({name: loaded} if name else dict(loaded))
            yield sample


class CheckedReader(CalibrationDataReader):
    """Hands samples to ONNX Runtime's quantiser, with a progress bar on a terminal.

    Raises (from :meth:`get_next`):
        CalibrationError: no sample at all, or one with a missing or unknown input, a wrong shape or dtype, NaN or inf.
    """

    def __init__(self, samples: Iterable[Feeds], inputs: Sequence[InputInfo], *, quiet: bool = False) -> None:
        self._inputs = inputs
        self._samples = iter(samples)
        self._count = 0
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("calibrating"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=len(samples) if isinstance(samples, Sized) else None)

    def get_next(self) -> dict[str, Any] | None:
        """The next sample, or None at the end."""
        self._progress.start()
        try:
            sample = next(self._samples, None)
            if sample is not None:
                self._check(sample)
        except BaseException:
            self._progress.stop()
            raise
        if sample is None:
            self._progress.stop()
            if self._count == 0:
                raise CalibrationError("calibration: no samples; int8 needs at least one")
            return None
        self._progress.advance(self._task)
        self._count += 1
        return dict(sample)

    def _check(self, sample: object) -> None:
        where = f"calibration sample {self._count}"
        if not isinstance(sample, Mapping):
            raise CalibrationError(
                f"{where}: a mapping from input names to arrays is needed, not {type(sample).__name__}"
            )
        try:
            check_feeds(self._inputs, sample)
        except ModelError as error:
            raise CalibrationError(f"{where}: {error}") from error
        for name, array in sample.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                what = "NaN" if np.isnan(array).any() else "infinity"
                raise CalibrationError(f"{where}: input {name!r} holds {what}")
