"""Provider options: defaults, and errors that list what is valid."""

from __future__ import annotations

import pytest

from ort_rknpu.errors import OptionError
from ort_rknpu.session.options import ProviderOptions


def test_defaults_are_those_of_the_contract() -> None:
    options = ProviderOptions.parse({"soc": "RK3588"})
    assert options.to_dict() == {
        "soc": "rk3588",
        "precision": "fp16",
        "toolkit": "2.3.2",
        "rules": "measured",
        "numerics": "npu",
        "cpu_numerics": "float32",
        "fallback": "cpu",
        "ops": "native",
        "calibration": "",
        "fused": "simulator",
        "overflow": "inf",
        "count_overflow": "0",
    }


def test_a_chip_without_fp16_defaults_to_int8() -> None:
    assert ProviderOptions.parse({"soc": "rv1106"}).precision == "int8"


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ({}, "rk3588"),
        ({"soc": "rk9999"}, "rk3588"),
        ({"soc": "rk3588", "speed": "fast"}, "cpu_numerics"),
        ({"soc": "rk3588", "numerics": "bf16"}, "npu, float32"),
        ({"soc": "rk3588", "precision": "int4"}, "fp16, int8"),
        ({"soc": "rv1106", "precision": "fp16"}, "int8"),
        ({"soc": "rk3588", "toolkit": "1.0"}, "2.3.2"),
        ({"soc": "rk3588", "fallback": "maybe"}, "cpu, error"),
    ],
)
def test_unknown_keys_and_values_are_errors_that_list_the_valid_ones(given: dict[str, str], listed: str) -> None:
    with pytest.raises(OptionError, match=listed):
        ProviderOptions.parse(given)
