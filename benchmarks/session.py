"""Cost of the emulated session, as ratios to stock ONNX Runtime within one process.

    python -m benchmarks.session [--models NAME...] [--runs 30] [--toolkit-python PYTHON]

Every mode runs in turn, so that whatever else the machine does hits all alike; the best run of each counts. With
``--toolkit-python`` the vendor's own simulator runs the same model in that interpreter, in turn with our session.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from models.samples import samples
from ort_rknpu.session.feeds import random_feeds
from ort_rknpu.session.inference import InferenceSession
from ort_rknpu.session.options import PROVIDER

MODELS = ("mobilenet", "mobilenetv3_large", "yolov8_dfl_decoded", "iresnet_arcface", "squeezenet_fire", "midas_depth")
MODES: dict[str, dict[str, str]] = {
    "float32": {"numerics": "float32"},
    "fp16": {},
    "fp16, counting": {"count_overflow": "1"},
    "fp16, counting, saturating": {"count_overflow": "1", "overflow": "saturate"},
}
_SIMULATOR = """
import json, sys, time
import numpy as np
from rknn.api import RKNN

path, feeds = sys.argv[1], np.load(sys.argv[2])
rknn = RKNN(verbose=False)
rknn.config(target_platform="rk3588")
assert rknn.load_onnx(model=path) == 0
assert rknn.build(do_quantization=False) == 0
assert rknn.init_runtime() == 0
inputs = [feeds[name] for name in feeds.files]
print("READY", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    rknn.inference(inputs=inputs, data_format=["nchw"] * len(inputs))
    print("TIME", time.perf_counter() - start, flush=True)
"""


def mobilenet() -> onnx.ModelProto:
    """Sixteen inverted residual blocks of full width at 224x224, as in MobileNetV2."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants = {"low": np.float32(0), "high": np.float32(6)}

    def conv(source: str, channels: int, width: int, kernel: int, stride: int, group: int, clip: bool = True) -> str:
        output = f"c{len(nodes)}"
        scale = np.sqrt(channels // group * kernel * kernel)
        constants[f"{output}.w"] = (rng.standard_normal((width, channels // group, kernel, kernel)) / scale).astype("f")
        constants[f"{output}.b"] = (rng.standard_normal(width) / 10).astype("f")
        attributes = {"strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": group}
        nodes.append(helper.make_node("Conv", [source, f"{output}.w", f"{output}.b"], [output], output, **attributes))
        if clip:
            nodes.append(helper.make_node("Clip", [output, "low", "high"], [f"{output}.r"], f"{output}.r"))
        return f"{output}.r" if clip else output

    last, channels = conv("x", 3, 32, 3, 2, 1), 32
    for block, width in enumerate([16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160]):
        stride = 2 if block in (1, 3, 6, 13) else 1
        wide = conv(last, channels, 6 * channels, 1, 1, 1)
        narrow = conv(
            conv(wide, 6 * channels, 6 * channels, 3, stride, 6 * channels), 6 * channels, width, 1, 1, 1, False
        )
        if stride == 1 and width == channels:
            nodes.append(helper.make_node("Add", [last, narrow], [f"{narrow}.s"], f"{narrow}.s"))
            narrow = f"{narrow}.s"
        last, channels = narrow, width
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"], "pool"))
    graph = helper.make_graph(
        nodes,
        "mobilenet",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def single_thread() -> onnxruntime.SessionOptions:
    """Options under which times do not depend on what other cores do."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return options


def best_times(runs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The shortest time of every entry, run in turn."""
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], run())
    return best


def timed(session: onnxruntime.InferenceSession, feeds: Mapping[str, np.ndarray]) -> Callable[[], float]:
    """One run of ``session``, in seconds."""

    def run() -> float:
        start = time.perf_counter()
        session.run(None, feeds)
        return time.perf_counter() - start

    return run


class Simulator:
    """The vendor's simulator in its own interpreter, one inference a line."""

    def __init__(self, python: str, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path, data = Path(self._folder.name) / "model.onnx", Path(self._folder.name) / "feeds.npz"
        onnx.save(model, path)
        np.savez(data, **feeds)
        self._process = subprocess.Popen(
            [python, "-c", _SIMULATOR, str(path), str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder.name,
        )
        self._wait("READY")

    def _wait(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line
        raise RuntimeError("the simulator ended")

    def run(self) -> float:
        """One inference, in seconds as measured inside."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._wait("TIME").split()[1])

    def close(self) -> None:
        """Ends the interpreter."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)
        self._folder.cleanup()


def measure(name: str, rounds: int, toolkit_python: str | None) -> dict[str, float]:
    """Mode -> time relative to stock ONNX Runtime; ``simulator`` relative to our fp16 session."""
    model = mobilenet() if name == "mobilenet" else samples()[name].build()
    stock = onnxruntime.InferenceSession(model.SerializeToString(), single_thread(), providers=["CPUExecutionProvider"])
    feeds = random_feeds(stock.get_inputs())
    runs: dict[str, Callable[[], float]] = {"stock": timed(stock, feeds)}
    for mode, options in MODES.items():
        providers: Sequence[Any] = [(PROVIDER, {"soc": "rk3588", **options}), "CPUExecutionProvider"]
        runs[mode] = timed(InferenceSession(model, single_thread(), providers=providers), feeds)
    best = best_times(runs, rounds)
    result = {mode: best[mode] / best["stock"] for mode in MODES}
    if toolkit_python is not None:
        simulator = Simulator(toolkit_python, model, feeds)
        kept: Sequence[Any] = [(PROVIDER, {"soc": "rk3588", "cpu_numerics": "fp16"}), "CPUExecutionProvider"]
        ours = timed(InferenceSession(model, providers=kept), feeds)
        pair = best_times({"ours": ours, "simulator": simulator.run}, max(5, rounds // 3))
        simulator.close()
        result["simulator"] = pair["simulator"] / pair["ours"]
    return result


def main() -> None:
    """Prints one line a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--toolkit-python", help="an interpreter with rknn-toolkit2")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    found = {name: measure(name, arguments.runs, arguments.toolkit_python) for name in arguments.models}
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    columns = [*MODES, *(["simulator"] if arguments.toolkit_python else [])]
    print(f"{'relative to stock ONNX Runtime':32}" + "".join(f"{column:>28}" for column in columns))
    for name, row in found.items():
        print(f"{name:32}" + "".join(f"{row[column]:28.2f}" for column in columns))


if __name__ == "__main__":
    main()
