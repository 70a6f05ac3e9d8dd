"""``ort-rknpu socs``: every SoC with its group and precisions."""

from __future__ import annotations

from typing import Annotated

import typer

from ort_rknpu.cli.output import print_view, write_output


def command(
    output_format: Annotated[str, typer.Option("--format", help="text, json or html.")] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """List every SoC with its group, precisions, NPU cores and Flash-Attention conditions."""
    from ort_rknpu.listing import socs

    show(socs(), output_format, quiet)


def show(result: object, output_format: str, quiet: bool) -> None:
    """Prints a listing in the format asked for.

    Raises:
        OptionError: unknown format.
    """
    from ort_rknpu.errors import OptionError
    from ort_rknpu.listing import SocTable, Spec
    from ort_rknpu.present import listing

    assert isinstance(result, SocTable | Spec)
    if output_format == "text":
        print_view(listing.view(result), quiet)
    elif output_format in ("json", "html"):
        text = result.to_json(indent=1) + "\n" if output_format == "json" else result.to_html()
        write_output(text, None, quiet)
    else:
        raise OptionError(f"unknown format {output_format!r}; known: text, json, html")
