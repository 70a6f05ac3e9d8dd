"""``ort-rknpu spec``: the documented rules of one SoC as tables."""

from __future__ import annotations

from typing import Annotated

import typer

from ort_rknpu.cli.socs import show


def command(
    soc: Annotated[str, typer.Argument(help="SoC, as in the socs command.")],
    op: Annotated[str, typer.Argument(help="ONNX op, ex op or compiled row; all entries without.")] = "",
    output_format: Annotated[str, typer.Option("--format", help="text, json or html.")] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Show the documented rules of a SoC: every entry, or the limits of one op."""
    from ort_rknpu.listing import spec

    show(spec(soc, op), output_format, quiet)
