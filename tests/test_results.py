"""The files in docs/results, and what the pages say because of them."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from side_by_side import models, recorded
from side_by_side.conditions import LEVELS, Condition
from side_by_side.recorded import Cell, Recorded, Times

import list_results

MACHINE = {
    "processor": "A processor", "microarchitecture": "some-lake", "family": "6", "model": "1", "stepping": "0",
    "extensions": ["avx2"], "cores": 2, "system": "Linux",
}  # fmt: skip
TWO = Condition(threads=2)


def cell(model: str, group: str = "paddle", condition: Condition = TWO, **medians: float) -> Cell:
    engines = {name: Times(median, median, median, median, median, 9) for name, median in medians.items()}
    versions = dict.fromkeys(medians, "1.0")
    return Cell(model, model.title(), group, condition, "2025-01-31", "abc", versions, ("tuning: own",), 0.5, engines)


def example() -> Recorded:
    """Return results in which Lite is ahead on two Paddle models, and behind on one and on one ONNX model."""
    cells = (
        cell("one", lite=1.0, openvino=2.0, iree=8.0),
        cell("two", lite=2.0, openvino=1.0),
        cell("four", lite=1.0, onnxruntime=4.0),
        cell("one,batch=4", lite=4.0, openvino=6.0),
        cell("half", "onnx", lite=1.0, openvino=0.999),
    )
    return Recorded(MACHINE, cells)


def in_folder(folder: Path) -> Path:
    (folder / "some-lake.json").write_text(example().to_text())
    return folder


def test_every_file_of_results_is_valid_and_named_after_its_processor() -> None:
    for name, results in list_results.read_all().items():
        assert results.cells, name
        assert name == results.machine["microarchitecture"]
        assert len({one.key for one in results.cells}) == len(results.cells), "a cell is recorded once"
        for one in results.cells:
            assert one.model.partition(",")[0] in models.GROUPS[one.group]
            assert one.condition.level in ("", *LEVELS)
            assert one.engines.keys() == one.versions.keys()
            assert all(0 < t.minimum <= t.lower <= t.median <= t.upper and t.runs > 0 for t in one.engines.values())


def test_results_are_written_and_read_without_loss(tmp_path: Path) -> None:
    found = list_results.read_all(in_folder(tmp_path))
    assert found == {"some-lake": example()}
    assert found["some-lake"].to_text() == example().to_text()
    cells = example().to_text().partition('"cells"')[2]
    assert len([line for line in cells.splitlines() if '"model"' in line]) == len(example().cells)


def test_a_new_measurement_replaces_its_cells_only() -> None:
    newer = cell("two", lite=1.0, openvino=3.0)
    updated = example().updated(Recorded(MACHINE, (newer, cell("new", lite=1.0))))
    assert [one.model for one in updated.cells] == ["one", "two", "four", "new", "one,batch=4", "half"]
    assert updated.cells[1] == newer
    assert updated.cells[0] == example().cells[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, "version 1, found 'lite-results', 99"),
        ({"schema": "other"}, "expected schema 'lite-results'"),
        ({"more": 1}, "the file has a field too many or too few: more"),
        ({"machine": {}}, "the machine has a field too many or too few: .*stepping"),
        ({"cells": [{"model": "x"}]}, "cell 0 has a field too many or too few: .*engines"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_name(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = in_folder(tmp_path) / "some-lake.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=rf"some-lake\.json: .*{message}"):
        recorded.read(file)


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    file = in_folder(tmp_path) / "some-lake.json"
    file.write_text(file.read_text().replace('"iree"', '"other"'))
    with pytest.raises(ValueError, match="cell 0 names 'other', which is no engine and no level"):
        recorded.read(file)


def test_claims_name_the_processor_and_the_models_on_which_lite_is_behind(tmp_path: Path) -> None:
    lines = list_results.claims(in_folder(tmp_path)).splitlines()
    name, condition = "A processor (some-lake), 2 cores", "2 threads, interleaved"
    for line in (
        f"| {name} | the Paddle models | {condition} | **1.59** | 2 of 3 | Two 0.50 |",
        f"| {name} | the ONNX models | {condition} | **1.00** | 0 of 1 | Half 0.99 |",
    ):
        assert line in lines
    assert not any("batch" in line for line in lines)
    assert any("](results/some-lake.svg)" in line for line in lines)


def test_details_have_every_time_and_its_origin(tmp_path: Path) -> None:
    written = list_results.details(in_folder(tmp_path))
    for line in (
        "| One | 1.00 | 2.00 | 8.00 | **2.00** |".replace("1.00 | 2.00", "1.00 | - | 2.00"),
        "| Two | 2.00 | - | 1.00 | - | **0.50**, behind |",
        "### ONNX models: 2 threads, interleaved",
        "### Paddle models, batch 4: 2 threads, interleaved",
    ):
        assert line in written.splitlines()
    for text in ("2025-01-31", "commit abc", "IREE 1.0", "tuning: own", "family 6, model 1", "load of the machine"):
        assert text in written


def test_the_chart_of_a_processor_shows_the_paddle_models(tmp_path: Path) -> None:
    ((file, drawn),) = list_results.charts(in_folder(tmp_path)).items()
    assert file == tmp_path / "some-lake.svg"
    texts = [element.text for element in ElementTree.fromstring(drawn).iter()]
    assert {"One", "Two", "Four"} <= set(texts)
    assert "Half" not in texts


def test_without_results_the_pages_say_how_to_measure(tmp_path: Path) -> None:
    assert "make bench ARGS=--record" in list_results.claims(tmp_path)
    assert "make bench ARGS=--record" in list_results.details(tmp_path)
    assert list_results.charts(tmp_path) == {}
    only_lite = replace(example(), cells=(cell("one", lite=1.0),))
    (tmp_path / "some-lake.json").write_text(only_lite.to_text())
    assert list_results.charts(tmp_path) == {}
