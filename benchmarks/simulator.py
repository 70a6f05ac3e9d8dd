"""How near the session's fp16 numerics are to the vendor's recorded simulator, case by case.

    python -m benchmarks.simulator [--toolkit-python PYTHON] [--write]

Every recorded case runs with ``cpu_numerics="fp16"``. With ``--toolkit-python`` the sample models run instead, whole,
beside the simulator in that interpreter. ``--write`` keeps the figures under docs/data, which the page
docs/generated/numerics.md is made from.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from models.samples import samples
from ort_rknpu.compare.metrics import Accumulator, half_ulps
from ort_rknpu.session.feeds import random_feeds
from ort_rknpu.session.inference import InferenceSession
from ort_rknpu.session.options import PROVIDER

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "data" / "simulator.json"
SAMPLES = ROOT / "docs" / "data" / "samples.json"

_SIMULATOR = """
import sys
import numpy as np
from rknn.api import RKNN

rknn = RKNN(verbose=False)
rknn.config(target_platform="rk3588")
assert rknn.load_onnx(model=sys.argv[1]) == 0
assert rknn.build(do_quantization=False) == 0
assert rknn.init_runtime() == 0
feeds = np.load(sys.argv[2])
inputs = [feeds[name] for name in feeds.files]
np.savez(sys.argv[3], *rknn.inference(inputs=inputs, data_format=["nchw"] * len(inputs)))
"""


@dataclass(frozen=True)
class Case:
    """One model with what the simulator computed for it."""

    name: str
    model: Path
    recording: Path
    prefix: str

    def distances(self) -> np.ndarray:
        """float16 steps between the session and the simulator, for every output value; NaN equals NaN."""
        with np.load(self.recording) as data:
            feeds = {key[3:]: data[key] for key in data.files if key.startswith("in_")}
            expected = {key[len(self.prefix) :]: data[key] for key in data.files if key.startswith(self.prefix)}
        session = InferenceSession(self.model, providers=[(PROVIDER, {"soc": "rk3588", "cpu_numerics": "fp16"})])
        found = dict(zip(expected, session.run(list(expected), feeds)))
        result = []
        for name, value in expected.items():
            same = np.isnan(value).ravel() & np.isnan(found[name]).ravel()
            result.append(np.where(same, 0, half_ulps(value.ravel(), found[name].ravel())))
        return np.concatenate(result)


def cases() -> Iterator[Case]:
    """Every recorded case: dumps and sources of the golden cases, and the models made to probe single rules."""
    for folder in sorted((ROOT / "tests" / "data" / "exops").glob("*/*")):
        with np.load(folder / "io.npz") as data:
            if not any(key.startswith("toolkit_sim_") for key in data.files):
                continue
        for form in ("fused", "source"):
            model = folder / f"{form}.onnx"
            if model.exists():
                name = f"{folder.parent.name}/{folder.name}/{form}"
                yield Case(name, model, folder / "io.npz", "toolkit_sim_")
    for folder in sorted((ROOT / "tests" / "data" / "simulator").iterdir()):
        if folder.is_dir():
            yield Case(f"probes/{folder.name}/source", folder / "model.onnx", folder / "io.npz", "sim_")


def measure() -> dict[str, dict[str, float | int]]:
    """Case -> number of values, share that is bit-equal, largest distance in ulp."""
    result: dict[str, dict[str, float | int]] = {}
    for case in cases():
        found = case.distances()
        result[case.name] = {
            "values": int(found.size),
            "equal": round(float((found == 0).mean()), 4),
            "ulp": int(found.max()),
        }
    return result


def measure_sample(name: str, python: str) -> dict[str, float | int | None] | None:
    """A sample model in the simulator and in our session; None where the toolkit does not build it.

    ``db`` and ``float32_db``: our signal-to-noise ratio against the simulator and against float32, None for equality.
    """
    model = samples()[name].build()
    stock = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = random_feeds(stock.get_inputs(), seed=7)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / file) for file in ("model.onnx", "feeds.npz", "results.npz")]
        onnx.save(model, paths[0])
        np.savez(paths[1], **feeds)
        subprocess.run([python, "-c", _SIMULATOR, *paths], cwd=folder, capture_output=True, timeout=300, check=False)
        if not Path(paths[2]).exists():
            return None
        with np.load(paths[2]) as data:
            simulated = [data[key] for key in data.files]
    ours = InferenceSession(model, providers=[(PROVIDER, {"soc": "rk3588", "cpu_numerics": "fp16"})])
    to_simulator, to_float32, steps = Accumulator(), Accumulator(), []
    for expected, found, exact in zip(simulated, ours.run(None, feeds), stock.run(None, feeds)):
        if found.dtype.kind == "f" and expected.size == found.size:
            expected = expected.reshape(found.shape)
            same = np.isnan(expected) & np.isnan(found)
            steps.append(np.where(same, 0, half_ulps(expected, found)).ravel())
            to_simulator.add(expected, found)
            to_float32.add(exact, found)
    if not steps:
        return None
    distances = np.concatenate(steps)
    ratios = [accumulator.result().sqnr_db for accumulator in (to_simulator, to_float32)]
    decibels = [None if np.isinf(ratio) else round(ratio, 1) for ratio in ratios]
    return {
        "values": int(distances.size),
        "equal": round(float((distances == 0).mean()), 4),
        "ulp": int(distances.max()),
        "db": decibels[0],
        "float32_db": decibels[1],
    }


def main() -> None:
    """Prints what is not bit-equal, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toolkit-python", help="an interpreter with rknn-toolkit2")
    parser.add_argument("--models", nargs="*", help="sample models, all by default")
    parser.add_argument("--write", action="store_true", help="keep the figures")
    arguments = parser.parse_args()
    target = RESULTS
    found: Mapping[str, Mapping[str, Any]]
    if arguments.toolkit_python:
        measured = {name: measure_sample(name, arguments.toolkit_python) for name in arguments.models or samples()}
        found, target = {name: row for name, row in measured.items() if row is not None}, SAMPLES
    else:
        found = measure()
    for name, row in found.items():
        if row["ulp"]:
            print(f"{name:45} {row['equal']:8.2%} of {row['values']} equal, at most {row['ulp']} ulp")
    print(f"{sum(not row['ulp'] for row in found.values())} of {len(found)} cases bit-equal")
    if arguments.write:
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
