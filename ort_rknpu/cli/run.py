"""``ort-rknpu run``: runs a model and prints its outputs' shapes and the time."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from ort_rknpu.cli.output import working

Ops = Annotated[
    Literal["native", "python"], typer.Option("--ops", help="ex operators as native ONNX or as Python ops.")
]


def _provider(soc: str, ops: str) -> Any:
    options = {"soc": soc or "rk3588", "ops": ops}
    return ("RknpuExecutionProvider", options if soc else {**options, "numerics": "float32"})


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    inputs: Annotated[list[str] | None, typer.Option("--input", help="NAME=FILE.npy; repeatable.")] = None,
    soc: Annotated[str, typer.Option("--soc", help="Run with this chip's numerics; float32 without.")] = "",
    ops: Ops = "native",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the outputs to this .npz file.")] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Timed runs after the first.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of random inputs.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Run a model. Inputs that are not given are random."""
    from ort_rknpu.session.feeds import random_feeds, read_inputs
    from ort_rknpu.session.inference import InferenceSession

    times = []
    with working(f"running {model.name}", quiet):
        session = InferenceSession(model, providers=[_provider(soc, ops), "CPUExecutionProvider"])
        feeds = random_feeds(session.get_inputs(), seed, read_inputs(inputs or []))
        names = [value.name for value in session.get_outputs()]
        results = session.run(names, feeds)
        for _ in range(repeat):
            start = time.perf_counter()
            session.run(names, feeds)
            times.append(time.perf_counter() - start)
    if output is not None:
        np.savez(output, **dict(zip(names, results)))
    if not quiet:
        for name, array in feeds.items():
            typer.echo(f"input  {name}: {array.dtype}{list(array.shape)}")
        for name, value in zip(names, results):
            array = np.asarray(value)
            typer.echo(f"output {name}: {array.dtype}{list(array.shape)}")
        typer.echo(f"time   {statistics.median(times) * 1e3:.3f} ms, median of {repeat} runs")
