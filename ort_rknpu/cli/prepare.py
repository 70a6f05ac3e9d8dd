"""``ort-rknpu prepare``: writes the model that ONNX Runtime can load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ort_rknpu.cli.run import Ops


def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The toolkit's dump.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The model to write.")],
    ops: Ops = "native",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Rewrite ex operators so that ONNX Runtime loads the model."""
    from custom_ops import prepare_file

    model = prepare_file(source, target, ops)
    if not quiet:
        typer.echo(f"{target}: {len(model.graph.node)} nodes")
