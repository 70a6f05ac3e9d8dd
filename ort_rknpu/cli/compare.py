"""``ort-rknpu compare``: NPU numerics against float32, per partition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ort_rknpu.cli.output import print_view, working, write_output
from ort_rknpu.targets.socs import DEFAULT_TOOLKIT


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    soc: Annotated[str, typer.Option("--soc", help="The chip.")],
    inputs: Annotated[list[str] | None, typer.Option("--input", help="NAME=FILE.npy; repeatable.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp16 or int8; default: fp16 where the SoC has it.")] = None,
    rules: Annotated[str, typer.Option(help="measured or documented.")] = "measured",
    toolkit: Annotated[str, typer.Option(help="Version of the vendor's toolkit.")] = DEFAULT_TOOLKIT,
    cpu_numerics: Annotated[str, typer.Option(help="float32, or fp16: round what CPU ops write too.")] = "float32",
    calibration: Annotated[Path | None, typer.Option(help="Folder of npy or npz files, for int8.")] = None,
    batches: Annotated[int, typer.Option("--batches", min=1, help="How many random inputs to run.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of random inputs.")] = 0,
    format: Annotated[Literal["text", "json", "html"], typer.Option("--format", help="Output format.")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """How far NPU numerics are from float32, where that begins, and what each partition costs."""
    from ort_rknpu.compare.compare import compare
    from ort_rknpu.session.feeds import read_inputs

    # calibrating shows a bar of its own, and a terminal has room for one
    with working(f"running {model.name}", quiet or calibration is not None):
        found = compare(
            model,
            soc,
            read_inputs(inputs or []),
            precision=precision,
            toolkit=toolkit,
            rules=rules,
            cpu_numerics=cpu_numerics,
            calibration=calibration,
            batches=batches,
            seed=seed,
            quiet=quiet,
        )
    if format == "text" and output is None:
        print_view(found.view(), quiet)
    else:
        writers = {"text": found.__str__, "json": found.to_json, "html": found.to_html}
        write_output(writers[format]() + "\n", output, quiet)
