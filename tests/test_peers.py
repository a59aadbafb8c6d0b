"""The benchmark of Lite and other engines: it runs, reports omissions, and computes ratios. Speed is not asserted."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from tiers import in_part

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import peers
from side_by_side import chart, contenders, models, recorded, report
from side_by_side.conditions import Condition
from side_by_side.engines import ENGINES
from side_by_side.fix_shapes import fix_shapes
from side_by_side.models import Model, catalog
from side_by_side.results import FirstResult, LeftOut, Results, Timing
from side_by_side.timing import differences
from side_by_side.variants import variants
from side_by_side.worker_process import WorkerError

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv"
MODULES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "paddle": "paddle", "iree": "iree"}
ONE, INTERLEAVED, ALONE = Condition(), Condition(threads=2), Condition(threads=2, alone=True)
CONVERTER = importlib.util.find_spec("paddle2onnx") is not None

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processor time and memory are read from /proc")


def tiny_model() -> Model:
    def picture() -> dict[str, np.ndarray]:
        with np.load(TINY / "inputs.npz") as inputs:
            return dict(inputs)

    legacy = TINY / "legacy"
    files = catalog.ModelPath(legacy / "inference.pdmodel", legacy / "inference.pdiparams")
    return Model("tiny", "Tiny network", lambda: files, picture)


def can_run(name: str) -> bool:
    needs_converter = ENGINES[name].reads in ("onnx", "iree")
    return importlib.util.find_spec(MODULES[name]) is not None and (CONVERTER or not needs_converter)


@pytest.fixture
def tiny_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(models, "MODELS", {"tiny": tiny_model()})
    monkeypatch.setenv("LITE_MODEL_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("tiny_only")
@pytest.mark.parametrize("peer", in_part("packages", [None, "onnxruntime", "openvino", "paddle", "iree"], [None]))
def test_a_run_from_end_to_end(peer: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if peer is not None and not can_run(peer):
        pytest.skip(f"{peer}, or its model converter, is not installed")
    engines = ["lite", *([peer] if peer else [])]
    nowhere = str(tmp_path / "nowhere/bin/python")
    arguments = ["--peers", *engines[1:], "paddle_lite", "--paddle-lite-python", nowhere, "--backend", "host"]
    peers.main([*arguments, "--threads", "1", "--startup", "--quick", "--out", str(tmp_path)])

    content = json.loads((tmp_path / "peers.json").read_text())
    assert content["schema"] == "lite-side-by-side"
    assert content["schema_version"] == 2
    assert [entry["engine"] for entry in content["timings"]] == engines
    for entry in content["timings"]:
        assert len(entry["milliseconds"]) >= entry["runs_in_a_slice"] > 0
        assert entry["difference"] < 1e-5
        assert 0 < entry["summary"]["minimum"] <= entry["summary"]["median"]
        assert entry["condition"] == {"level": "", "threads": 1, "alone": False}
    assert [entry["engine"] for entry in content["first_results"]] == ["lite", "lite_file", *engines[1:]]
    assert all(entry["cold_bytes"][0] > 1 << 20 for entry in content["first_results"])
    assert [entry["engine"] for entry in content["left_out"]] == ["paddle_lite"]
    assert len(content["ratios"]) == len(engines) - 1
    assert Results.from_json(content).to_json() == content

    written = (tmp_path / "peers.md").read_text()
    for expected in ("| Tiny network |", "Paddle-Lite: "):
        assert expected in written
    assert written in capsys.readouterr().out


@pytest.mark.usefixtures("tiny_only")
def test_an_engine_that_cannot_load_is_quoted(tmp_path: Path) -> None:
    lite = contenders.find(ENGINES["lite"], Path(sys.executable), "no_such_backend")
    assert isinstance(lite, contenders.Contender)
    model = models.set_up(tiny_model(), tmp_path)
    with pytest.raises(WorkerError, match=r"lite: the process ended with 1: .*no_such_backend"):
        lite.start(model, ONE)


def test_an_engine_that_is_not_installed_is_named(tmp_path: Path) -> None:
    assert str(tmp_path.parent) in contenders.find(ENGINES["lite"], tmp_path / "bin" / "python", "host")


def test_onnx_models_go_to_engines_that_read_them(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx writes the shapes into the model")
    node, floats = onnx.helper.make_node("Relu", ["x"], ["y"]), onnx.TensorProto.FLOAT
    ends = [[onnx.helper.make_tensor_value_info(name, floats, ["n", 3])] for name in "xy"]
    source = tmp_path / "relu.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "relu", *ends)), source)
    target = tmp_path / "twin.onnx"
    fix_shapes(source, {"x": [2, 3]}, target)
    (graph_input,) = onnx.load(target).graph.input
    assert [size.dim_value for size in graph_input.type.tensor_type.shape.dim] == [2, 3]

    own = Model("relu", "Relu", lambda: source, lambda: {"x": np.zeros((2, 3), np.float32)})
    stored = models.set_up(own, tmp_path)
    found = {name: contenders.Contender(engine, Path(sys.executable), "1", "") for name, engine in ENGINES.items()}
    assert [name for name, contender in found.items() if contender.supports(stored)] == [
        "lite", "lite_file", "onnxruntime", "openvino", "iree",
    ]  # fmt: skip
    assert found["lite"].files(stored, ONE) == (str(source),)


def test_groups_of_models_have_names() -> None:
    options = peers.parse(["--models", "onnx", "onnx_magika", "resnet18"])
    assert options.models == [*models.GROUPS["onnx"], "resnet18"]
    assert set(peers.parse([]).models) == set(models.GROUPS["onnx"]) | set(models.GROUPS["paddle"])


def test_wrong_output_has_a_large_difference() -> None:
    right = np.linspace(0.0, 2.0, 5, dtype=np.float32)
    distances = differences({"a": right, "b": right, "c": right + 1, "d": right * np.nan, "e": right[:4]})
    assert distances["a"] == distances["b"] == 0
    assert distances["c"] == pytest.approx(0.5)
    assert math.isnan(distances["d"])
    assert distances["e"] == math.inf


def example_results() -> Results:
    """Return results of two models: on one Lite is twice as fast as the best peer, on the other half as fast."""

    def timing(model: str, engine: str, *milliseconds: float) -> Timing:
        return Timing(model, engine, INTERLEAVED, 10, list(milliseconds), 1.9, 0.0, 1e-6)

    return Results(
        made_at="2025-01-31T12:00:00+00:00",
        machine={"processor": "A processor", "microarchitecture": "some-lake", "family": "6", "model": "1",
                 "stepping": "0", "cores": 2, "extensions": ["avx2"], "memory_bytes": 1 << 34, "system": "Linux",
                 "load_average": 0.0,
                 "lite": {"": ["level: x86-64-v4", "features: fma", "tuning: defaults for Some Lake"]}},
        settings={"backend": "x86", "seconds": 3.0, "repeats": 5},
        versions={"lite": "1.0", "onnxruntime": "2.0", "openvino": "3.0"},
        models={"one": "Model one", "two": "Model two"},
        timings=[
            timing("one", "lite", 1.0, 2.0, 3.0),
            timing("one", "onnxruntime", 3.0, 4.0, 9.0),
            timing("one", "openvino", 2.0, 5.0, 5.0),
            timing("two", "lite", 8.0, 8.0, 8.0),
            timing("two", "openvino", 4.0, 4.0, 4.0),
        ],
        first_results=[FirstResult("one", "lite", [0.5], [1 << 20], [0.25], [2 << 20])],
        left_out=[LeftOut("onnxruntime", "it\nended", "two", INTERLEAVED)],
    )  # fmt: skip


def test_the_ratio_is_to_the_best_peer() -> None:
    results = example_results()
    one, two = (results.ratio(model, INTERLEAVED) for model in results.models)
    assert one is not None
    assert two is not None
    assert (one.best_peer, one.of_medians, one.of_minima) == ("onnxruntime", 2.0, 2.0)
    assert (two.best_peer, two.of_medians) == ("openvino", 0.5)
    assert results.geometric_means(INTERLEAVED) == pytest.approx((1.0, 1.0))
    assert results.ratio("one", ONE) is results.ratio("one", ALONE) is None


def test_report_has_every_result() -> None:
    written = report.markdown(example_results())
    for line in (
        "| Model one | 2.00 (1.50 to 2.50) | 4.00 (3.50 to 6.50) | 5.00 (3.50 to 5.00) | **2.00** | 2.00 |",
        "| Model two | 8.00 (8.00 to 8.00) | - | 4.00 (4.00 to 4.00) | **0.50** | 0.50 |",
        "| geometric mean |  |  |  | **1.00** | 1.00 |",
        "| Model one | 500 / 250 ms, 1 / 2 MiB |",
        "- ONNX Runtime, Model two, 2 threads, interleaved: it ended",
        "- Lite, tuning: defaults for Some Lake",
    ):
        assert line in written.splitlines()


def test_stored_results_are_reported_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(example_results().to_json()))
    peers.main(["--redraw", str(kept), "--out", str(tmp_path)])
    assert (tmp_path / "peers.md").read_text() == report.markdown(example_results())


def test_foreign_json_is_refused() -> None:
    with pytest.raises(ValueError, match="expected schema 'lite-side-by-side', version 2, found None, 7"):
        Results.from_json({"schema_version": 7})


def test_the_chart_has_a_bar_for_each_time_and_tints_the_models_on_which_lite_is_behind() -> None:
    drawn = chart.drawing(recorded.cells_of(example_results(), {}), "A & B")
    elements = list(ElementTree.fromstring(drawn).iter())
    texts = [element.text for element in elements if element.text]
    for expected in ("Model one", "Model two", "2 threads, interleaved", "2.00", "0.50", "Lite", "OpenVINO"):
        assert texts.count(expected) == 1
    assert any("A & B" in text for text in texts)
    tints = [element.get("fill") for element in elements]
    assert tints.count("#fbe3e6") == 1
    assert [tints.count(chart._COLOURS[name]) for name in ("lite", "onnxruntime", "openvino")] == [2 + 1 + 2, 1 + 1, 3]


# **** conditions and variants ****


@pytest.mark.usefixtures("tiny_only")
def test_alone_a_process_is_stopped_between_its_turns(tmp_path: Path) -> None:
    lite = contenders.find(ENGINES["lite"], Path(sys.executable), "host")
    assert isinstance(lite, contenders.Contender)
    model = models.set_up(tiny_model(), tmp_path)
    with lite.start(model, ALONE) as worker:
        stat = Path(f"/proc/{worker._process.pid}/stat")
        for _ in range(2):
            assert stat.read_text().rpartition(")")[2].split()[0] == "T"
            times, _ = worker.run(3)
            assert len(times) == 3
    assert worker._process.returncode == 0


def test_threads_spin_only_if_the_engine_is_alone() -> None:
    paddle = ENGINES["paddle"]
    assert "KMP_BLOCKTIME" in paddle.environment(INTERLEAVED)
    assert "KMP_BLOCKTIME" not in paddle.environment(ALONE)


def test_engines_that_cannot_be_held_to_a_level_are_not_measured_at_it() -> None:
    held = Condition("avx2", 2)
    assert [name for name, engine in ENGINES.items() if engine.can_run(held)] == ["lite", "openvino", "paddle", "iree"]
    assert ENGINES["lite"].environment(held) == {"LITE_X86_LEVEL": "v3"}
    assert ENGINES["openvino"].environment(held) == {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert not ENGINES["paddle_lite"].can_run(INTERLEAVED)


def test_conditions_follow_from_the_options() -> None:
    assert peers.conditions(peers.parse([])) == [ONE, INTERLEAVED, ALONE]
    options = peers.parse(["--threads", "2", "--ways", "alone", "--levels", "own", "avx2"])
    assert peers.conditions(options) == [ALONE, Condition("avx2", 2, True)]


def test_variants_have_larger_batches_and_pictures() -> None:
    found = {
        own.name: {name: array.shape for name, array in own.inputs().items()}
        for name in ("pp_ocrv4_det", "onnx_silero_vad", "onnx_ddddocr_det", "onnx_rapidocr_rec")
        for own in variants(models.MODELS[name], [1, 4], large=True)
    }
    assert found["pp_ocrv4_det"] == {"x": (1, 3, 640, 640)}
    assert found["pp_ocrv4_det,batch=4"] == {"x": (4, 3, 640, 640)}
    assert found["pp_ocrv4_det,large"] == {"x": (1, 3, 1280, 1280)}
    assert found["onnx_silero_vad,batch=4"]["input"] == (4, 576)
    assert found["onnx_rapidocr_rec,large"]["x"][3] == 1280
    assert [name for name in found if name.startswith("onnx_ddddocr_det")] == ["onnx_ddddocr_det"]  # its size is fixed


@pytest.mark.full("packages")
@pytest.mark.usefixtures("tiny_only")
def test_an_interrupted_run_is_continued_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--peers", "--backend", "host", "--quick", "--out", str(tmp_path), "--record", str(tmp_path / "results")]
    peers.main([*common, "--threads", "1"])
    (file,) = (tmp_path / "results").iterdir()
    first = recorded.read(file)
    assert [cell.key for cell in first.cells] == [("tiny", ONE)]

    capsys.readouterr()
    peers.main([*common, "--threads", "1", "2", "--ways", "alone", "--resume"])
    assert "Tiny network, 1 thread: measured before" in capsys.readouterr().out
    second = recorded.read(file)
    assert [cell.key for cell in second.cells] == [("tiny", ONE), ("tiny", ALONE)]
    assert second.cells[0] == first.cells[0]

    content = json.loads((tmp_path / "peers.json").read_text())
    (tmp_path / "peers.json").write_text(json.dumps({**content, "versions": {"lite": "0.0"}}))
    with pytest.raises(SystemExit, match="cannot be continued; .*--out"):
        peers.main([*common, "--resume"])
