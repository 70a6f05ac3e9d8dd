"""``ort-rknpu extract``: one partition as a model of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ort_rknpu.cli.output import working
from ort_rknpu.targets.socs import DEFAULT_TOOLKIT


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    partition: Annotated[int, typer.Argument(help="Number of the partition, as check lists it.")],
    out: Annotated[Path, typer.Argument(help="File to write.")],
    soc: Annotated[str, typer.Option("--soc", help="The chip.")],
    precision: Annotated[str | None, typer.Option(help="fp16 or int8; default: fp16 where the SoC has it.")] = None,
    rules: Annotated[str, typer.Option(help="measured or documented.")] = "measured",
    toolkit: Annotated[str, typer.Option(help="Version of the vendor's toolkit.")] = DEFAULT_TOOLKIT,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Write one partition as an ONNX model; a dynamic batch is written as 1."""
    from ort_rknpu.compare.extract import extract

    with working(f"checking {model.name}", quiet):
        found = extract(model, partition, out, soc=soc, precision=precision, rules=rules, toolkit=toolkit)
    if not quiet:
        for kind, values in (("input", found.graph.input), ("output", found.graph.output)):
            for value in values:
                dims = [
                    d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim
                ]
                typer.echo(f"{kind:<6} {value.name}: {dims}")
        typer.echo(f"{len(found.graph.node)} nodes written to {out}")
