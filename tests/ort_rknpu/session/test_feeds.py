"""Random and given inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ort_rknpu.errors import ModelError, RknpuError
from ort_rknpu.session.feeds import check_feeds, random_feeds, read_inputs


@dataclass
class Info:
    name: str
    shape: list[int | str | None]
    type: str = "tensor(float)"


INPUTS = [Info("x", ["batch", 3, 4]), Info("m", ["batch", None], "tensor(bool)"), Info("i", [2], "tensor(uint8)")]


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second, other = (random_feeds(INPUTS, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["x"], other["x"])
    assert {name: value.dtype.name for name, value in first.items()} == {"x": "float32", "m": "bool", "i": "uint8"}


def test_open_dimensions_follow_the_given_input() -> None:
    feeds = random_feeds(INPUTS, given={"x": np.zeros((5, 3, 4), np.float32)})
    assert feeds["m"].shape == (5, 1)
    assert random_feeds(INPUTS)["x"].shape == (1, 3, 4)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"z": np.zeros(2, np.float32)}, "no input 'z'; it has x, m, i"),
        ({"x": np.zeros((1, 3, 5), np.float32)}, r"shape \[1, 3, 5\]; the model takes \['batch', 3, 4\]"),
        ({"x": np.zeros((1, 3, 4))}, "is float64; the model takes float32"),
    ],
)
def test_wrong_inputs_are_named(feeds: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_feeds(INPUTS, feeds)


def test_a_missing_input_is_named() -> None:
    with pytest.raises(ModelError, match="'x' is missing"):
        check_feeds(INPUTS, {})


def test_inputs_are_read_from_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a=b.npy", np.arange(3))
    assert read_inputs([f"x={tmp_path}/a=b.npy"])["x"].tolist() == [0, 1, 2]
    np.savez(tmp_path / "c.npz", a=np.arange(3))
    for entry, message in {
        "x": "NAME=FILE.npy",
        "=f": "NAME=FILE.npy",
        "x=/nonexistent": "cannot read",
        f"x={tmp_path}/c.npz": "archive",
    }.items():
        with pytest.raises(RknpuError, match=message):
            read_inputs([entry])
