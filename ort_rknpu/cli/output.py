"""How commands print and write: rich text to a terminal, files replaced in one step."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, RenderableType

from ort_rknpu.errors import OptionError


@contextmanager
def working(on: str, quiet: bool = False) -> Iterator[None]:
    """Shows on a terminal's standard error that work goes on; nothing elsewhere."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(on):
        yield


def print_view(view: RenderableType, quiet: bool = False) -> None:
    """Prints a rich view; without a terminal it is plain text of a fixed width."""
    if quiet:
        return
    if sys.stdout.isatty():
        Console().print(view)
    else:
        from ort_rknpu.present.text import to_text

        print(to_text(view))


def write_output(text: str, output: Path | None, quiet: bool = False) -> None:
    """Prints ``text``, or replaces the file ``output`` by it in one step.

    Raises:
        OptionError: the file cannot be written.
    """
    if output is None:
        if not quiet:
            sys.stdout.write(text)
        return
    write_atomically(output, text.encode())


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces ``path`` by ``data``: whoever reads it sees the old file or the new one.

    Raises:
        OptionError: the file cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            # mkstemp makes files private; an output file gets what open() would give it
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from error
