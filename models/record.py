"""Records what the vendor's toolkit does with the sample models, and packs the models without their weights.

    python -m models.record OUT --toolkit-python PYTHON [NAME...]

writes ``OUT/<toolkit version>/own.jsonl.gz`` and ``OUT/models/own.tar.xz``, laid out like the recordings of the tests.
Models that ``OUT`` already has a record of are not built again; the archive always has all.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx

from models.samples import samples
from ort_rknpu.targets.socs import get_target
from ort_rknpu.vendor.fill import strip_weights
from ort_rknpu.vendor.record import record_model
from ort_rknpu.vendor.records import Record, read_records, write_records
from ort_rknpu.vendor.toolkit import Toolkit

TARGETS = (
    "rk3588/fp16",
    "rk3588/int8",
    "rk3566/fp16",
    "rk3562/fp16",
    "rk3576/fp16",
    "rv1126b/fp16",
    "rk2118/fp16",
    "rv1106/int8",
    "rv1103b/int8",
)


def pack(path: Path, models: Iterable[onnx.ModelProto]) -> None:
    """A ``.tar.xz`` of the models without their weights; the same models give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz") as tar:
        for model in models:
            data = strip_weights(model).SerializeToString(deterministic=True)
            entry = tarfile.TarInfo(f"{model.graph.name}.onnx")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def main(arguments: Sequence[str] | None = None) -> None:
    """Records the models asked for, all without names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--toolkit-python", required=True)
    parser.add_argument("--timeout", type=float, default=300.0)
    options = parser.parse_args(arguments)
    known = samples()
    models = [known[name].build() for name in options.names or known]
    pack(options.out / "models" / "own.tar.xz", (sample.build() for sample in known.values()))
    with Toolkit(options.toolkit_python, timeout=options.timeout) as toolkit, tempfile.TemporaryDirectory() as folder:
        path = options.out / toolkit.version / "own.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        records: list[Record] = list(read_records(path)) if path.exists() else []
        done = {record.model for record in records}
        for model in models:
            name = model.graph.name
            if name in done:
                continue
            file = Path(folder, f"{name}.onnx")
            onnx.save(model, str(file))
            targets = [get_target(*target.split("/"), toolkit.version) for target in TARGETS]
            records += record_model(toolkit, file, targets)
            write_records(path, records)
            print(f"{name}: {sum(r.ok for r in records if r.model == name)} of {len(TARGETS)} build", file=sys.stderr)


if __name__ == "__main__":
    main()
