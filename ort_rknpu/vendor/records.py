"""Recordings of the vendor's compiler: one JSON line per model and target, plain or gzip-compressed.

A line holds ``model``, ``soc``, ``precision``, ``toolkit`` and ``ok``; where the build succeeded also ``layers`` (rows
``[op, target, input shapes, output shapes, name]`` of the printed table), ``rewrites`` (``[rule, removed, added]``) and
``nodes`` (name of a node of the file -> npu, cpu, split or folded), else ``stage`` and ``error``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ort_rknpu.errors import ModelError

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Layer:
    """One row of the compiler's layer table: ``device`` is ``npu`` or ``cpu``."""

    op: str
    device: str
    input_shapes: Shapes
    output_shapes: Shapes
    name: str


@dataclass(frozen=True)
class Rewrite:
    """One firing of a rewrite rule: names of the nodes it took and of those it put in their place."""

    rule: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What the toolkit did with one model on one target."""

    model: str
    soc: str
    precision: str
    toolkit: str
    ok: bool
    layers: tuple[Layer, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    stage: str = ""
    error: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """The record of one parsed JSON line. KeyError where a field that every line has is missing."""
        return cls(
            model=data["model"],
            soc=data["soc"],
            precision=data["precision"],
            toolkit=data["toolkit"],
            ok=data["ok"],
            layers=tuple(
                Layer(op, device.lower(), _shapes(inputs), _shapes(outputs), name)
                for op, device, inputs, outputs, name in data.get("layers", ())
            ),
            rewrites=tuple(Rewrite(rule, tuple(old), tuple(new)) for rule, old, new in data.get("rewrites", ())),
            nodes=dict(data.get("nodes", {})),
            stage=data.get("stage", ""),
            error=data.get("error", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """The record as it stands in a file."""
        result: dict[str, Any] = {
            "model": self.model,
            "soc": self.soc,
            "precision": self.precision,
            "toolkit": self.toolkit,
            "ok": self.ok,
        }
        if not self.ok:
            return result | {"stage": self.stage, "error": self.error}
        result["layers"] = [
            [row.op, row.device.upper(), row.input_shapes, row.output_shapes, row.name] for row in self.layers
        ]
        result["rewrites"] = [[rewrite.rule, rewrite.removed, rewrite.added] for rewrite in self.rewrites]
        result["nodes"] = dict(self.nodes)
        return result


def _shapes(shapes: Iterable[Iterable[int]]) -> Shapes:
    return tuple(tuple(shape) for shape in shapes)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file (``.jsonl`` or ``.jsonl.gz``) in file order.

    Raises:
        ModelError: a line is no record; the message names file and line.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield Record.from_dict(json.loads(line))
            except (KeyError, TypeError, ValueError) as error:
                raise ModelError(f"{path}:{number}: not a record: {error!r}") from error


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Writes the records to a file; the same records give the same bytes, compressed or not."""
    text = "".join(json.dumps(record.to_dict(), separators=(",", ":")) + "\n" for record in records)
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def add_records(path: Path, records: Iterable[Record]) -> None:
    """Adds records to a file, which need not exist; one of the same model and target takes the older one's place.

    Raises:
        ModelError: the file holds something else.
    """

    def key(record: Record) -> tuple[str, str, str, str]:
        return record.model, record.soc, record.precision, record.toolkit

    merged = {key(record): record for record in (read_records(path) if path.exists() else ())}
    merged.update((key(record), record) for record in records)
    write_records(path, merged.values())
