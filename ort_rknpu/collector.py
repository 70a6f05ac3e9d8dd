"""Pauses Python's garbage collector while a large web of objects is built.

A graph is one web of references that all stay alive; scanning it again and again as it grows finds nothing and costs
as much time as building it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switches the collector off inside the block, and on again only if it was on."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
