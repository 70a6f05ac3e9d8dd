"""``ort-rknpu verify``: the vendor's toolkit against ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ort_rknpu.cli.output import working, write_output


def command(
    model: Annotated[Path, typer.Argument(help="ONNX model; weights that are absent are drawn at random.")],
    soc: Annotated[list[str], typer.Option(help="SoC, repeatable.")],
    toolkit_python: Annotated[Path, typer.Option(help="Python interpreter in which rknn-toolkit2 is installed.")],
    precision: Annotated[str | None, typer.Option(help="fp16 or int8; default: fp16 where the SoC has it.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Add what the toolkit did to this .jsonl or .jsonl.gz file.")
    ] = None,
    shape: Annotated[list[str] | None, typer.Option(help="Shape of an input, INPUT=1,3,640,640, repeatable.")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds one build may take.")] = 600,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Build the model with the vendor's toolkit and print where it and check differ. Exit status 1 if they do."""
    from ort_rknpu.vendor.records import add_records
    from ort_rknpu.vendor.toolkit import Toolkit
    from ort_rknpu.vendor.verify import verify

    with working(f"building {model.name} with the toolkit", quiet), Toolkit(toolkit_python, timeout=timeout) as toolkit:
        found = verify(model, soc, toolkit, precision, shape)
    if record is not None:
        add_records(record, [verification.record for verification in found])
    write_output("".join(f"{verification}\n" for verification in found), None, quiet)
    if any(verification.differs for verification in found):
        raise typer.Exit(1)
