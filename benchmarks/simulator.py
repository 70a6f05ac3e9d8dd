"""How near the session's fp16 numerics are to the vendor's recorded simulator, case by case.

    python -m benchmarks.simulator [--write]

Every recorded case runs with ``cpu_numerics="fp16"``; ``--write`` keeps the figures in docs/data/simulator.json, which
the page docs/generated/numerics.md is made from.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ort_rknpu.compare.metrics import half_ulps
from ort_rknpu.session.inference import InferenceSession
from ort_rknpu.session.options import PROVIDER

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "data" / "simulator.json"


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


def main() -> None:
    """Prints what is not bit-equal, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    arguments = parser.parse_args()
    found = measure()
    for name, row in found.items():
        if row["ulp"]:
            print(f"{name:45} {row['equal']:8.2%} of {row['values']} equal, at most {row['ulp']} ulp")
    print(f"{sum(not row['ulp'] for row in found.values())} of {len(found)} cases bit-equal")
    if arguments.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
