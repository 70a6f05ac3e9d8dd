"""The SoC registry: eleven chips, clear errors."""

from __future__ import annotations

import pytest

from ort_rknpu.errors import TargetError
from ort_rknpu.targets.socs import get_target, socs


def test_eleven_socs_in_seven_groups() -> None:
    assert len(socs()) == 11
    assert len({soc.group for soc in socs().values()}) == 7


@pytest.mark.parametrize(("soc", "precision"), [("rk3588", "fp16"), ("rv1106", "int8"), ("rk2118", "fp16")])
def test_default_precision(soc: str, precision: str) -> None:
    assert get_target(soc).precision == precision


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rk9999",), "known: rk2118"),
        (("rk3588", "int4"), "known: fp16, int8"),
        (("rv1106", "fp16"), "it has int8"),
        (("rk3588", "fp16", "1.0"), "known: 2.3.2"),
    ],
)
def test_unknown_target_lists_the_valid_ones(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(TargetError, match=message):
        get_target(*arguments)
