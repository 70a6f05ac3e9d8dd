"""Names of back end targets, and the shape of their rule files."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from ort_rknpu.errors import RuleDataError, TargetError
from ort_rknpu.targets.backends import registry
from ort_rknpu.targets.backends.registry import BACKENDS, Profile, backend_targets, get_backend_target, is_backend_name


@pytest.mark.parametrize(
    "name",
    [
        "tensorrt@8.5",
        "tensorrt@10.7",
        "tensorrt-dla@10.7",
        "directml@1_0",
        "directml@2_1",
        "directml@3_0",
        "directml@4_1",
        "directml@5_1",
        "directml-onnx@2_1",
        "openvino@numpy",
        "openvino@none",
        "openvino@pdpd",
        "openvino@pdpd:axis=1",
        "openvino@pdpd-runtime",
        "openvino@pdpd-runtime:axis=0",
    ],
)
def test_names_round_trip(name):
    assert is_backend_name(name)
    assert get_backend_target(name).name == name


def test_bare_name_means_the_default_variant():
    assert get_backend_target("TensorRT").name == "tensorrt@10.7"
    assert get_backend_target("openvino").name == "openvino@numpy"


def test_default_axis_is_not_part_of_the_name():
    assert get_backend_target("openvino@pdpd:axis=-1") == get_backend_target("openvino@pdpd")


@pytest.mark.parametrize(
    ("name", "lists"),
    [
        ("tensorflow@1", "tensorrt@{8.5,10.7}"),
        ("tensorrt@9", "tensorrt@8.5, tensorrt@10.7"),
        ("tensorrt@", "tensorrt@10.7"),
        ("directml", "directml@2_1"),
        ("directml@2.1", "directml@2_1"),
        ("openvino@paddle", "openvino@pdpd-runtime"),
        ("openvino@numpy:axis=1", "no option"),
        ("openvino@pdpd:axes=1", "axis=N"),
        ("openvino@pdpd:axis=x", "at least -1"),
        ("openvino@pdpd:axis=-2", "at least -1"),
        ("openvino@pdpd:axis", "at least -1"),
        ("tensorrt@10.7:axis=1", "no option"),
    ],
)
def test_unknown_names_list_the_valid_ones(name, lists):
    with pytest.raises(TargetError) as error:
        get_backend_target(name)
    assert lists in str(error.value)
    assert repr(name) in str(error.value)


def test_soc_names_are_not_back_ends():
    assert not any(is_backend_name(name) for name in ("rk3588", "all", "rv1106"))


def test_every_rule_file_is_registered_and_every_row_has_a_source():
    shipped = {f.name for f in files("ort_rknpu.targets.backends").iterdir() if f.name.endswith(".json")}
    assert shipped == {f"{name}.json" for name in BACKENDS}
    for name in shipped:
        data = json.loads(files("ort_rknpu.targets.backends").joinpath(name).read_text("utf-8"))
        sections = {key: value for key, value in data.items() if key not in ("domain", "profiles", "scope")}
        assert data["scope"]["source"]
        assert all(row["source"] for section in sections.values() for row in section), name


def test_a_row_with_other_fields_is_refused(monkeypatch):
    monkeypatch.setattr(registry, "load", lambda _: {"profiles": [{"name": "x", "variant": "1"}]})
    with pytest.raises(RuleDataError, match="profiles"):
        registry.rows("x", "profiles", Profile)


def test_a_row_without_source_is_refused(monkeypatch):
    monkeypatch.setattr(registry, "load", lambda _: {"conditions": [{"profile": "x", "text": "y", "source": ""}]})
    with pytest.raises(RuleDataError, match="source"):
        registry.rows("x", "conditions", registry.Condition)


def test_all_targets_are_listed_once():
    names = [target.name for target in backend_targets()]
    assert len(names) == len(set(names)) == 2 + 1 + 15 + 15 + 4
