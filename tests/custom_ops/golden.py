"""The golden cases: the toolkit's dumps of small models with inputs and expected outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1] / "data" / "exops"


@dataclass(frozen=True)
class Case:
    """One recorded dump. ``expected`` holds the toolkit's own float32 result where that differs from the source's."""

    name: str
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]

    @property
    def fused(self) -> Path:
        """The dump."""
        return ROOT / self.name / "fused.onnx"


def names() -> list[str]:
    """Every case, ``exSwish/silu`` and so on."""
    return sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("*/*/fused.onnx"))


@cache
def load(name: str) -> Case:
    """The case called ``name``."""
    with np.load(ROOT / name / "io.npz") as data:
        arrays = dict(data)
    inputs = {key.removeprefix("in_"): value for key, value in arrays.items() if key.startswith("in_")}
    expected = {key.removeprefix("out_"): value for key, value in arrays.items() if key.startswith("out_")}
    for key, value in arrays.items():
        if key.startswith("toolkit_golden_"):
            expected[key.removeprefix("toolkit_golden_")] = value
    return Case(name, inputs, expected)
