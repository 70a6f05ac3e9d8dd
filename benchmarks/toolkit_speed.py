"""Time of a check of every SoC against one build by the vendor's toolkit, as ratios within one run.

    python -m benchmarks.toolkit_speed --toolkit-python PYTHON [--recordings FOLDER] [--corpus B] [--nodes 100]

For every recorded model of more than ``--nodes`` nodes: load and check of all eleven SoCs in a warm process, against
the toolkit's ``load_onnx`` and one build for rk3588 fp16 (weights filled at random). Prints each ratio and the median.
Models that the toolkit refuses are left out: they end early.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import onnx

from benchmarks.placement import RECORDINGS, read_models
from ort_rknpu.check import check
from ort_rknpu.targets.socs import get_target
from ort_rknpu.vendor.fill import fill_stubs
from ort_rknpu.vendor.toolkit import Toolkit


def check_seconds(path: Path, toolkit: str, repeats: int) -> float:
    """Least time of loading the file and checking every SoC; the first, cold run does not count."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        check(str(path), "all", toolkit=toolkit)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one line per model, then the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolkit-python", required=True)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS)
    parser.add_argument("--corpus", default="B")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    ratios = []
    with Toolkit(options.toolkit_python, retries=0) as toolkit, tempfile.TemporaryDirectory() as folder:
        target = get_target("rk3588", "fp16", toolkit.version)
        print(f"{'model':44}{'nodes':>6}{'check all s':>12}{'toolkit s':>11}{'ratio':>8}")
        for name, data in read_models(options.recordings / "models", options.corpus):
            model = onnx.load_from_string(data)
            if len(model.graph.node) <= options.nodes:
                continue
            path = Path(folder, f"{name}.onnx")
            onnx.save(fill_stubs(model, Path(folder)), str(path))
            builds = []
            for _ in range(options.repeats):
                outcome = toolkit.build(path, target)
                if outcome.ok:
                    builds.append(sum(outcome.seconds.values()))
            if not builds:
                continue
            ours, theirs = check_seconds(path, toolkit.version, options.repeats), min(builds)
            ratios.append(ours / theirs)
            print(f"{name:44}{len(model.graph.node):6}{ours:12.3f}{theirs:11.3f}{ratios[-1]:8.3f}", flush=True)
    if not ratios:
        print("no model fits", file=sys.stderr)
        return 2
    print(f"median ratio of {len(ratios)} models: {statistics.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
