"""The rules as tables, in Python and on the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import ort_rknpu
from ort_rknpu.cli import build_app
from ort_rknpu.errors import OptionError, TargetError
from ort_rknpu.targets.ruledata import load_group
from ort_rknpu.targets.socs import socs as registry


def run(*arguments: str) -> str:
    result = CliRunner().invoke(build_app(), list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_socs_gives_every_soc_with_its_limits() -> None:
    table = ort_rknpu.socs()
    assert [soc.name for soc in table] == list(registry())
    assert len(table) == 11
    for soc in table:
        assert [entry.section for entry in soc.npu] == [rule.section for rule in load_group(soc.group).ops.values()]
    assert [len(table[name].cpu) for name in ("rk3588", "rv1106", "rk2118")] == [98, 11, 0]


@pytest.mark.parametrize(
    ("soc", "driver", "runtime"),
    [("rk3562", "0.8.8", "2.0.0"), ("rk3576", "0.9.7", "2.1.0"), ("rv1126b", "0.9.7", "2.1.0")],
)
def test_flash_attention_needs_a_driver_and_a_runtime(soc: str, driver: str, runtime: str) -> None:
    found = ort_rknpu.socs()[soc].flash_attention
    assert found is not None
    assert (found.min_driver, found.min_runtime, found.dtypes) == (driver, runtime, ("float16",))


def test_the_other_socs_have_no_flash_attention() -> None:
    with_it = [soc.name for soc in ort_rknpu.socs() if soc.flash_attention is not None]
    assert with_it == ["rk3562", "rk3576", "rv1126b"]


def test_results_are_the_same_bytes_twice_and_valid_json() -> None:
    first, second = ort_rknpu.socs(), ort_rknpu.socs()
    assert first.to_json() == second.to_json()
    assert json.loads(first.to_json())["socs"][0]["name"] == "rk2118"
    assert "rk3588" in str(first)
    assert "<td>rk3588</td>" in first.to_html()
    assert first._repr_html_() in first.to_html()


def test_spec_of_one_op_gives_the_limits_of_both_lists() -> None:
    entries = ort_rknpu.spec("rk3588", "resize").entries
    assert [(entry.device, entry.section) for entry in entries] == [("npu", "3.2.54"), ("cpu", "4.50")]
    limits = {limit.id: limit.requires for limit in entries[0].limits}
    assert limits["mode"] == "nearest or linear"
    assert "integer 2..8" in limits["scale"]


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("Conv", ["Conv", "DepthwiseConv", "Conv"]),
        ("ConvLeakyRelu", ["ConvPRelu"]),
        ("MatMul", ["exMatMul", "MatMul"]),
        ("Depthwise Convolution", ["DepthwiseConv"]),
        ("exgelu", ["exGelu", "exGelu"]),
    ],
)
def test_spec_finds_an_op_by_any_of_its_names(op: str, found: list[str]) -> None:
    assert [entry.op for entry in ort_rknpu.spec("rk3588", op).entries] == found


def test_every_limit_of_every_entry_is_told_in_words() -> None:
    for soc in ort_rknpu.socs():
        for entry in (*soc.npu, *soc.cpu):
            for limit in entry.limits:
                assert limit.requires, f"{soc.name} {entry.op} {limit.id}"


def test_unknown_names_are_told() -> None:
    with pytest.raises(TargetError, match="known: rk2118"):
        ort_rknpu.spec("rk9999")
    with pytest.raises(OptionError, match="close: Resize"):
        ort_rknpu.spec("rk3588", "Resise")


def test_commands_print_tables_and_json() -> None:
    assert "driver 0.9.7" in run("socs")
    assert len(json.loads(run("socs", "--format", "json"))["socs"]) == 11
    assert "3.2.54" in run("spec", "rk3588", "Resize")
    assert json.loads(run("spec", "rk3588", "Resize", "--format", "json"))["entries"][0]["op"] == "Resize"
    assert len(json.loads(run("spec", "rk3588", "--format", "json"))["entries"]) == 79 + 98
    assert "<table>" in run("spec", "rk3588", "Conv", "--format", "html")
    assert run("socs", "--quiet") == run("spec", "rk3588", "--quiet") == ""
