"""Cost of ``check`` as ratios within one run: to ``onnx.load``, of all SoCs to one, and per node as models grow.

    python -m benchmarks.check [--rules documented] [--sizes 2000,10000,50000]

The model is a stack of residual blocks (Conv, BatchNormalization, Relu, Sigmoid, Mul, Add) with a shape chain
(Shape, Gather, Concat, Reshape) in every block, as exporters write it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.check import check
from ort_rknpu.model import Model

CHANNELS = 16


def stack(nodes: int) -> onnx.ModelProto:
    """A model of about ``nodes`` nodes."""
    generator = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(generator.standard_normal((CHANNELS, CHANNELS, 3, 3), np.float32), "w"),
        *(
            numpy_helper.from_array(np.full(CHANNELS, 0.5, np.float32), name)
            for name in ("scale", "bias", "mean", "var")
        ),
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array([-1, 8, 32], np.int64), "rest"),
        numpy_helper.from_array(np.array([1, CHANNELS, 32, 32], np.int64), "back"),
    ]
    made: list[onnx.NodeProto] = []
    last = "x"

    def add(op: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(made)}"
        made.append(helper.make_node(op, inputs, [output], name=f"{op}_{len(made)}", **attributes))
        return output

    while len(made) < nodes:
        conv = add("Conv", last, "w", pads=[1, 1, 1, 1])
        norm = add("BatchNormalization", conv, "scale", "bias", "mean", "var")
        act = add("Relu", norm)
        gate = add("Mul", act, add("Sigmoid", act))
        batch = add("Gather", add("Shape", gate), "zero", axis=0)
        folded = add("Reshape", gate, add("Concat", batch, "rest", axis=0))
        last = add("Add", add("Reshape", folded, "back"), last)
    shape = [1, CHANNELS, 32, 32]
    graph = helper.make_graph(
        made,
        "stack",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def best(function: Callable[[], object], repeats: int) -> float:
    """Least CPU time of ``function`` in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Prints one row per model size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="measured")
    parser.add_argument("--soc", default="rk3588")
    parser.add_argument("--sizes", default="2000,10000,50000")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("nodes   onnx.load  view/load  one SoC/load  all/one  one SoC: us a node  one SoC: seconds")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, options.sizes.split(",")):
            path = Path(folder) / f"{size}.onnx"
            onnx.save(stack(size), path)
            load = best(lambda path=path: onnx.load(path), options.repeats)  # type: ignore[misc]
            view = best(lambda path=path: Model.load(path), options.repeats)  # type: ignore[misc]
            one = best(lambda path=path: check(path, options.soc, rules=options.rules), options.repeats)  # type: ignore[misc]
            every = best(lambda path=path: check(path, "all", rules=options.rules), options.repeats)  # type: ignore[misc]
            print(
                f"{size:6} {load * 1e3:8.1f} ms {view / load:10.1f} {one / load:13.1f} {every / one:8.2f} "
                f"{one / size * 1e6:19.0f} {one:17.2f}"
            )


if __name__ == "__main__":
    main()
