"""Records survive writing and reading, and a broken line is named."""

import json
from pathlib import Path

import pytest

from ort_rknpu.errors import ModelError
from ort_rknpu.vendor.records import read_records, write_records

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_written_records_read_back_the_same_and_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    records = list(read_records(RECORDINGS / "2.5.0" / "T.jsonl.gz"))
    assert {r.ok for r in records} == {True, False}
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_records(first, records)
    write_records(second, records)
    assert list(read_records(first)) == records
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("line", ['{"model": "m"}', "no json", "[1, 2]"])
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    good = {"model": "m", "soc": "rk3588", "precision": "fp16", "toolkit": "2.3.2", "ok": False}
    path.write_text(json.dumps(good) + "\n" + line)
    with pytest.raises(ModelError, match=r"r\.jsonl:2"):
        list(read_records(path))
