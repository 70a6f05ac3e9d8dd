"""``ort-rknpu diff``: a model against the toolkit's dump of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ort_rknpu.cli.output import working, write_output


def command(
    source: Annotated[Path, typer.Argument(help="The model.")],
    fused: Annotated[Path, typer.Argument(help="The toolkit's dump of it, check3_fuse_ops.onnx.")],
    inputs: Annotated[list[str] | None, typer.Option("--input", help="NAME=FILE.npy; repeatable.")] = None,
    rtol: Annotated[float, typer.Option("--rtol", min=0, help="A difference is more than ATOL + RTOL * |y|.")] = 1e-3,
    atol: Annotated[float, typer.Option("--atol", min=0, help="See --rtol.")] = 1e-3,
    format: Annotated[Literal["text", "json", "html"], typer.Option("--format", help="Output format.")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of random inputs.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Does the dump still mean what the model means? Exit status 1 if not. Inputs that are not given are random."""
    from ort_rknpu.compare.diff import diff
    from ort_rknpu.session.feeds import read_inputs

    with working(f"running {source.name} and {fused.name}", quiet):
        found = diff(source, fused, read_inputs(inputs or []), rtol=rtol, atol=atol, seed=seed)
    writers = {"text": found.__str__, "json": found.to_json, "html": found.to_html}
    write_output(writers[format]() + "\n", output, quiet)
    if found.differs:
        raise typer.Exit(1)
