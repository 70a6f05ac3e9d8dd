"""Speed of the ex operators, as ratios within one process.

    python -m benchmarks.ops [NAME...] [--write]

Per case: the native form against the fastest hand-written one under full optimisation, the Python op against the
native form, and the stock hook of onnxruntime-extensions against ours. One thread; the shortest of many runs, taken in
random order. ``--write`` puts the table into docs/benchmarks/ops.md.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import custom_ops
from benchmarks.op_cases import CASES, Case

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "ops.md"
CPU = ["CPUExecutionProvider"]


@dataclass(frozen=True)
class Result:
    """The shortest times of one case, in seconds."""

    name: str
    native: float
    best: float
    form: str
    python: float
    stock: float

    def row(self) -> str:
        """One line of the table."""
        ratios = (self.native / self.best, self.python / self.native, self.stock / self.python)
        return (
            f"| {self.name} | {self.native * 1e6:.0f} | {self.form} | " + " | ".join(f"{r:.2f}" for r in ratios) + " |"
        )


HEADER = (
    "| operator | native, µs | fastest by hand | native / by hand | Python op / native | stock hook / ours |",
    "|---|---|---|---|---|---|",
)


def model(case: Case, body: str, opset: int = 19) -> onnx.ModelProto:
    """The body as a model with those constants of the case that it reads."""
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in case.inputs.items())
    output = ",".join(map(str, case.output))
    graph = onnx.parser.parse_graph(f"g ({inputs}) => (float[{output}] y) {{ {body} }}")
    read = {name for node in graph.node for name in node.input}
    graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in case.constants.items() if k in read)
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return options


def shortest(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The shortest time of each, all of them run in turn, in random order, for about ``seconds``."""
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name in random.sample(list(runs), len(runs)):
            start = time.perf_counter()
            runs[name]()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@contextmanager
def stock_hook() -> Any:
    """Python ops go through the hook that onnxruntime-extensions comes with."""
    from onnxruntime_extensions import PyCustomOpDef
    from onnxruntime_extensions._ocos import _on_pyop_invocation

    from custom_ops.runtime import hook

    PyCustomOpDef.install_hooker(_on_pyop_invocation)
    try:
        yield
    finally:
        PyCustomOpDef.install_hooker(hook)


def measure(case: Case, seconds: float = 1.5) -> Result:
    """Times one case.

    Raises:
        AssertionError: two forms differ by more than 1e-4 of 1 + |y|.
    """
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in case.inputs.items()}
    source = model(case, case.body)
    models = {"native": custom_ops.prepare(source)}
    models |= {name: model(case, body, case.opsets.get(name, 19)) for name, body in case.forms.items()}
    sessions = {
        name: onnxruntime.InferenceSession(m.SerializeToString(), _options(), providers=CPU)
        for name, m in models.items()
    }
    options = _options()
    custom_ops.register_custom_ops(options)
    prepared = custom_ops.prepare(source, "python").SerializeToString()
    python = onnxruntime.InferenceSession(prepared, options, providers=CPU)
    expected = python.run(None, feeds)[0]
    for name, session in sessions.items():
        difference = np.max(np.abs(session.run(None, feeds)[0] - expected) / (1 + np.abs(expected)))
        assert difference < 1e-4, f"{case.name}: {name} differs by {difference}"
    runs = {name: lambda s=session: s.run(None, feeds) for name, session in sessions.items()}
    times = shortest({**runs, "python": lambda: python.run(None, feeds)}, seconds)
    with stock_hook():
        stock = shortest({"stock": lambda: python.run(None, feeds)}, min(seconds, 0.5))["stock"]
    form = min(case.forms, key=times.__getitem__)
    return Result(case.name, times["native"], times[form], form, times["python"], stock)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the cases asked for, all without names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    lines = list(HEADER)
    print("\n".join(lines))
    for case in CASES:
        if not options.names or any(case.name.startswith(name) for name in options.names):
            lines.append(measure(case, options.seconds).row())
            print(lines[-1], flush=True)
    if options.write:
        versions = f"onnxruntime {onnxruntime.__version__}, numpy {np.__version__}, one thread"
        text = f"# Speed of the ex operators\n\nWritten by `python -m benchmarks.ops --write`: {versions}.\n\n"
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
