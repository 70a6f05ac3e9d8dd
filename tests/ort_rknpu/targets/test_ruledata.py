"""The shipped rules are complete, and a malformed rule file is refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ort_rknpu.errors import RuleDataError
from ort_rknpu.targets.expressions import Expression
from ort_rknpu.targets.io_rules import load_io
from ort_rknpu.targets.ruledata import definitions, load_cpu, load_group, parse_cpu, parse_group, read_json
from ort_rknpu.targets.socs import socs

ENTRIES = {
    "rk2118": 60,
    "rk3562": 76,
    "rk3566_rk3568": 74,
    "rk3576_rv1126b": 78,
    "rk3588": 79,
    "rv1103_rv1106": 74,
    "rv1103b_rv1106b": 59,
}
CHAPTERS = {
    "rk3566_rk3568": "3.1",
    "rk3588": "3.2",
    "rk3562": "3.3",
    "rv1103_rv1106": "3.4",
    "rk3576_rv1126b": "3.5",
    "rk2118": "3.6",
    "rv1103b_rv1106b": "3.7",
}


@pytest.mark.parametrize("group", ENTRIES)
def test_every_npu_entry_is_there_with_its_section(group: str) -> None:
    rules = load_group(group)
    sections = [rule.section for rule in rules.ops.values()]
    assert rules.chapter == CHAPTERS[group]
    assert sections == [f"{rules.chapter}.{number}" for number in range(1, ENTRIES[group] + 1)]


def test_all_groups_hold_500_entries() -> None:
    assert {soc.group for soc in socs().values()} == set(ENTRIES)
    assert sum(ENTRIES.values()) == 500


def test_every_cpu_entry_is_there_with_its_section() -> None:
    rules = load_cpu()
    assert [rule.section for rule in rules.entries] == [f"4.{number}" for number in range(2, 100)]
    assert rules.notes_section == "4.1"


def test_eleven_cpu_entries_run_on_the_rv110x_chips() -> None:
    names = [rule.name for rule in load_cpu().entries if rule.rv]
    assert sorted(names) == [
        "Concat",
        "DataConvert",
        "Div",
        "Exp",
        "Gather",
        "ReduceL2",
        "ReduceMax",
        "Reshape",
        "ScatterND",
        "Softmax",
        "exLayerNorm",
    ]


def test_sixteen_input_and_output_sections() -> None:
    sections = {"5.1", "5.2"}
    for group in ENTRIES:
        rules = load_io(group)
        sections |= {rules.input_section, rules.output_section}
    assert sections == {"5.1", "5.2"} | {f"5.{table}.{number}" for table in (1, 2) for number in range(1, 8)}


def test_chapter_6_defines_the_dilated_kernel() -> None:
    values = {"kernel_h": 3, "dilations_h": 2, "kernel_w": 5, "dilations_w": 1}
    assert {name: expression(values) for name, expression in definitions().items()} == {
        "dilated_kernel_h": 5,
        "dilated_kernel_w": 5,
    }
    assert [row["section"] for row in read_json("definitions.json")["definitions"].values()] == ["6.1", "6.2"]


def _conv_limit(value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["ops"]["Conv"]["limits"]["kernel_h"] = value

    return change


def _entry(op: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["ops"][op].update(fields)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(surprise=1), r"unknown fields \['surprise'\]"),
        (_entry("Conv", sektion="3.2.5"), r"rk3588.json: Conv: unknown fields \['sektion'\]"),
        (lambda data: data["ops"]["Conv"].pop("section"), r"missing fields \['section'\]"),
        (lambda data: data["ops"]["Conv"]["inputs"][0].update(typ="int8"), r"unknown fields \['typ'\]"),
        (_conv_limit("[1, 31]"), "malformed interval"),
        (_conv_limit("31..1"), "empty interval"),
        (_conv_limit([]), "neither an interval nor a list"),
        (_conv_limit({"in": "1..31", "require": "kernel_h > 0"}), "exactly one of in, require, form"),
        (_conv_limit({"in": "1..31", "least": 1}), r"unknown fields \['least'\]"),
        (_conv_limit({"form": "guess"}), "unknown form 'guess'"),
        (_conv_limit({"require": "kernel_h >"}), "expression"),
        (_conv_limit({"require": "open('x')"}), "not part of the rule language"),
        (_conv_limit({"in": "1..31", "reading": "D3"}), "reading is no number"),
        (_entry("ConvRelu", limits_of="Convolution"), "no entry 'Convolution'"),
        (_entry("Conv", status="maybe"), "status 'maybe'"),
        (_entry("Conv", kind="operator"), "kind 'operator'"),
        (_entry("Conv", activations=[]), "no activation dtypes"),
        (_entry("Conv", multicore={"rk3566": "yes"}), "multicore"),
        (_entry("Relu", onnx=["Conv"]), "'Conv' is judged by"),
        (lambda data: data.update(socs=["rk3588", "rk3566"]), "the registry has"),
        (lambda data: data["ops"]["Transpose"]["limits"]["perm"]["table"].update({"0012": []}), "no permutation"),
    ],
)
def test_a_malformed_rule_file_is_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    data = copy.deepcopy(read_json("rk3588.json"))
    change(data)
    with pytest.raises(RuleDataError, match=message):
        parse_group("rk3588.json", data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["entries"][0].update(rank=4), r"unknown fields \['rank'\]"),
        (lambda data: data["availability"].pop("rk3588"), "availability"),
        (lambda data: data["availability"].update(rk3588="some"), "availability"),
    ],
)
def test_a_malformed_cpu_list_is_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    data = copy.deepcopy(read_json("cpu.json"))
    change(data)
    with pytest.raises(RuleDataError, match=message):
        parse_cpu("cpu.json", data)


@pytest.mark.parametrize(
    ("source", "values", "result"),
    [
        ("a % 4 == 0", {"a": 8}, True),
        ("a % 4 == 0", {"a": 6}, False),
        ("a % 4 == 0", {"a": None}, None),
        ("a == 1 or b == 1", {"a": 1, "b": None}, True),
        ("a == 1 or b == 1", {"a": 2, "b": None}, None),
        ("a < 4 and b < 4", {"a": 5, "b": None}, False),
        ("1 <= a <= b", {"a": 0, "b": None}, False),
        ("8 - max(ceil(a / 128), 2)", {"a": 300}, 5),
        ("not a", {"a": None}, None),
        ("a in (1, 3)", {"a": 3}, True),
    ],
)
def test_expressions_are_three_valued(source: str, values: dict[str, Any], result: Any) -> None:
    assert Expression(source)(values) == result


def test_an_expression_describes_both_sides() -> None:
    condition = Expression("h1*w1 < 2*q", {"q": 2048})
    assert condition.source == "h1*w1 < 4096"
    assert condition.describe({"h1": 100, "w1": 50}) == ("h1*w1 = 5000", "< 4096")
    assert Expression("h1 % 16 == 0").describe({"h1": 20}) == ("h1 = 20", "a multiple of 16")


READINGS = Path(__file__).parents[3] / "docs" / "readings.md"


def readings_of(data: Any) -> set[int]:
    """Every number that a rule file gives as ``reading`` or in ``readings``."""
    if isinstance(data, list):
        return set().union(*map(readings_of, data))
    if not isinstance(data, dict):
        return set()
    own = {data["reading"]} if isinstance(data.get("reading"), int) else set()
    own |= set(data.get("readings", ()))
    return own.union(*map(readings_of, data.values()))


def test_every_reading_that_a_rule_names_is_explained() -> None:
    explained = [int(number) for number in re.findall(r"^(\d+)\. ", READINGS.read_text("utf-8"), re.MULTILINE)]
    assert explained == list(range(1, len(explained) + 1))
    named = set().union(*(readings_of(read_json(f"{name}.json")) for name in [*ENTRIES, "cpu", "io"]))
    assert named <= set(explained)
