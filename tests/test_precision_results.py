"""The comparison in fewer bits: what is recorded, and what the page says of it. Speed is not asserted."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import peers
from side_by_side import precision_models, precision_results
from side_by_side.exact import distances
from side_by_side.models import Model, catalog, set_up
from side_by_side.precision_models import PRECISIONS, Pair, Precision
from side_by_side.precision_results import Cell, Figures, read, update

import list_precision

TINY = Path(__file__).parent / "models/goldens/tiny_conv"
MACHINE = {
    "processor": "A processor", "microarchitecture": "some-lake", "family": "6", "model": "1", "stepping": "0",
    "extensions": ["avx2"], "cores": 2, "system": "Linux",
}  # fmt: skip


ORDER = {"bfloat16": ["one", "two"]}


def figures(median: float, snr: float = 40.0, memory: int = 100 << 20) -> Figures:
    return Figures(median, median, median, median, 9, snr, 0.01, memory, "")


def cell(lite: float, best: float, model: str = "one", threads: int = 1) -> Cell:
    """Return a cell with float32 at twice Lite's time, and ONNX Runtime in float32 only."""
    engines = {
        "lite": {"float32": figures(2 * lite, 120.0), "bfloat16": figures(lite, 41.0)},
        "onnxruntime": {"float32": figures(9 * best, 121.0)},
        "openvino": {"float32": figures(3 * best, 122.0), "bfloat16": figures(best, 39.5, 90 << 20)},
    }
    versions = dict.fromkeys(engines, "1.0")
    absent = {"onnxruntime": "it does not compute in bfloat16"}
    return Cell(model, model.title(), "bfloat16", threads, "2025-01-31", "abc", versions, 0.5, engines, absent)


def test_losing_cells_are_marked(tmp_path: Path) -> None:
    cells = [cell(1.0, 2.0), cell(1.0, 0.999, "two")]
    update(tmp_path / "some-lake.json", MACHINE, cells, ORDER)
    text = list_precision.details(tmp_path)
    one, two = [line for line in text.splitlines() if line.startswith(("| One", "| Two"))][:2]
    assert one.endswith("| **2.00** |")
    assert two.endswith("| **0.99**, behind |")
    assert "Lite is behind in 1 of 2 cells" in text
    assert "| **+1.5** |" in text, "Lite is nearer to the reference"
    assert "| **0.90**, behind |" in text, "OpenVINO needs less memory"
    assert "- ONNX Runtime: it does not compute in bfloat16." in text


def test_float32_of_another_engine_counts_as_its_best() -> None:
    only = cell(4.0, 1.0)
    slow = Cell(**{**vars_of(only), "engines": {"lite": only.engines["lite"], "onnxruntime": only.engines["openvino"]}})
    assert slow.best_peer == ("onnxruntime", "bfloat16")
    without = {"lite": only.engines["lite"], "onnxruntime": {"float32": figures(3.0)}}
    assert Cell(**{**vars_of(only), "engines": without}).ratio == pytest.approx(0.75)


def vars_of(one: Cell) -> dict[str, object]:
    return {name: getattr(one, name) for name in Cell.__dataclass_fields__}


def test_a_new_measurement_replaces_its_cell(tmp_path: Path) -> None:
    file = tmp_path / "some-lake.json"
    update(file, MACHINE, [cell(1.0, 2.0, threads=2), cell(1.0, 2.0)], ORDER)
    update(file, MACHINE, [cell(1.0, 3.0)], ORDER)
    assert [(one.threads, one.ratio) for one in read(file).cells] == [(1, 3.0), (2, 2.0)]
    file.write_text(json.dumps({"schema": "other"}))
    with pytest.raises(ValueError, match=f"{file.name}.*lite-precision-results.*'other'.*measure again"):
        read(file)


def test_recorded_files_are_named_after_their_processor() -> None:
    for file in list_precision.FOLDER.glob("*.json"):
        recorded = read(file)
        assert file.stem == recorded.machine["microarchitecture"]
        assert len({one.key for one in recorded.cells}) == len(recorded.cells), "a cell is recorded once"
        for one in recorded.cells:
            assert one.model in PRECISIONS[one.precision].models
            every = [figures for forms in one.engines.values() for figures in forms.values()]
            assert all(0 < f.minimum <= f.lower <= f.median <= f.upper and f.memory > 1 << 20 for f in every)


def test_distances() -> None:
    exact = np.array([3.0, -4.0, 0.0])
    snr, error = distances(np.array([3.0, -4.0, 0.5], np.float32), exact)
    assert (snr, error) == (pytest.approx(20.0), pytest.approx(0.5 / 7))
    assert distances(exact, exact)[0] == pytest.approx(20 * 24 * math.log10(2))
    assert distances(exact * np.nan, exact) == (-math.inf, math.inf)
    assert distances(exact[:2], exact) == (-math.inf, math.inf)


@pytest.mark.full("packages")
@pytest.mark.skipif(sys.platform != "linux", reason="processor time and memory are read from /proc")
def test_a_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def picture() -> dict[str, np.ndarray]:
        with np.load(TINY / "inputs.npz") as inputs:
            return dict(inputs)

    def pair(folder: Path) -> Pair:
        files = catalog.ModelPath(TINY / "legacy/inference.pdmodel", TINY / "legacy/inference.pdiparams")
        stored = set_up(Model("tiny", "Tiny network", lambda: files, picture), folder)
        return Pair("tiny", stored.title, stored, stored)

    monkeypatch.setenv("LITE_MODEL_CACHE", str(tmp_path / "cache"))
    own = Precision("bfloat16", "bfloat16", "bfloat16", {"tiny": pair})
    monkeypatch.setattr(precision_models, "PRECISIONS", MappingProxyType({"bfloat16": own}))
    arguments = ["--precision", "bfloat16", "--peers", "--threads", "1", "2", "--quick", "--out", str(tmp_path)]
    peers.main(arguments)
    (file,) = (tmp_path / "precision").glob("*.json")
    for one in precision_results.read(file).cells:
        forms = one.engines["lite"]
        assert forms.keys() == {"float32", "bfloat16"}
        assert forms["float32"].snr > 90
        assert "float32" in forms["float32"].computes
    assert [one.threads for one in precision_results.read(file).cells] == [1, 2]
