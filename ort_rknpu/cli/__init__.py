"""The command line: one thin file a command, each over the public Python API.

A command's module defines ``command``, a typer callback; its name in the table below is what users type.
"""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from ort_rknpu._version import __version__
from ort_rknpu.errors import RknpuError

COMMANDS: dict[str, str] = {
    # what users type -> module with a function `command`
    "check": "ort_rknpu.cli.check",
    "compare": "ort_rknpu.cli.compare",
    "diff": "ort_rknpu.cli.diff",
    "explain": "ort_rknpu.cli.explain",
    "extract": "ort_rknpu.cli.extract",
    "prepare": "ort_rknpu.cli.prepare",
    "run": "ort_rknpu.cli.run",
    "spec": "ort_rknpu.cli.spec",
    "socs": "ort_rknpu.cli.socs",
    "verify": "ort_rknpu.cli.verify",
}


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


def build_app() -> typer.Typer:
    """The typer application with every command attached."""
    app = typer.Typer(
        name="ort-rknpu",
        help="Check, run and compare ONNX models for Rockchip NPUs.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def root(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    ) -> None:
        pass

    for name, module in COMMANDS.items():
        app.command(name)(import_module(module).command)
    return app


def main() -> None:
    """Runs the command line; bad input ends with status 2 and one line on standard error."""
    try:
        status = build_app()(standalone_mode=False)
    except Exception as error:
        sys.exit(_fail(error))
    sys.exit(status if isinstance(status, int) else 0)


def _fail(error: Exception) -> int:
    """Prints one line about bad input or wrong usage; anything else is a defect and goes on."""
    if isinstance(error, RknpuError):
        message = str(error)
    elif hasattr(error, "format_message"):  # click's usage errors, wherever typer has click from
        message = error.format_message()
    else:
        raise error
    if message:  # empty where the help was printed instead
        typer.echo(f"ort-rknpu: {' '.join(message.split())}", err=True)
    return 2
