"""The registry of SoCs and what a check is asked for: one SoC, one precision, one toolkit version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from ort_rknpu.errors import RuleDataError, TargetError

Precision = Literal["fp16", "int8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
TOOLKITS: tuple[str, ...] = ("2.3.2", "2.5.0")
DEFAULT_TOOLKIT = "2.3.2"


@dataclass(frozen=True)
class FlashAttention:
    """What a SoC needs to run attention as Flash Attention: least driver and runtime, activation dtypes."""

    min_driver: str
    min_runtime: str
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class Soc:
    """One chip: its rule group, the activation precisions of its NPU and the number of NPU cores."""

    name: str
    group: str
    precisions: tuple[Precision, ...]
    npu_cores: int
    flash_attention: FlashAttention | None = None


@dataclass(frozen=True)
class Target:
    """What a model is checked against."""

    soc: Soc
    precision: Precision
    toolkit: str = DEFAULT_TOOLKIT

    @property
    def group(self) -> str:
        """The rule group of the SoC, for example ``rk3576_rv1126b``."""
        return self.soc.group


@cache
def socs() -> dict[str, Soc]:
    """Every SoC by name, in alphabetical order."""
    data: dict[str, Any] = json.loads(files("ort_rknpu.targets").joinpath("socs.json").read_text("utf-8"))
    result = {}
    for row in data["socs"]:
        unknown = set(row) - {"name", "group", "precisions", "npu_cores", "flash_attention"}
        if unknown:
            raise RuleDataError(f"socs.json: unknown fields {sorted(unknown)} in {row.get('name')!r}")
        flash = row.get("flash_attention")
        if flash is not None:
            flash = FlashAttention(flash["min_driver"], flash["min_runtime"], tuple(flash["dtypes"]))
        result[row["name"]] = Soc(row["name"], row["group"], tuple(row["precisions"]), row["npu_cores"], flash)
    return dict(sorted(result.items()))


def get_target(soc: str, precision: str | None = None, toolkit: str = DEFAULT_TOOLKIT) -> Target:
    """The target named, with the SoC's default precision (fp16 where it has it, else int8) if none is given.

    Raises:
        TargetError: unknown SoC, precision or toolkit, or a precision that this SoC lacks.
    """
    found = socs().get(soc.lower())
    if found is None:
        raise TargetError(f"unknown SoC {soc!r}; known: {', '.join(socs())}")
    if toolkit not in TOOLKITS:
        raise TargetError(f"unknown toolkit version {toolkit!r}; known: {', '.join(TOOLKITS)}")
    if precision is None:
        return Target(found, found.precisions[0], toolkit)
    for known in found.precisions:
        if precision == known:
            return Target(found, known, toolkit)
    if precision not in PRECISIONS:
        raise TargetError(f"unknown precision {precision!r}; known: {', '.join(PRECISIONS)}")
    raise TargetError(f"{found.name} has no {precision}; it has {', '.join(found.precisions)}")
