"""Cases exported as folders of ONNX's form, and the judgement of results that were computed from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from lite_conformance.cases.case import Settings
from lite_conformance.cli import run_command_line
from lite_conformance.data_folders.exporting import export, writer_of_onnx
from lite_conformance.data_folders.index import read_index
from lite_conformance.data_folders.judging import judge
from lite_conformance.data_folders.tensor_files import read_tensor, write_tensor
from lite_conformance.reports.record import Record, Status, read_report
from lite_conformance.run.selection import Selection
from lite_core.errors import InputError
from lite_core.ir import DType
from lite_core.plugins import PluginManager

CASES = ("Relu[f32,drawn]", "Relu[bf16,drawn]", "MatMul[f32,drawn]", "graph[f32,dynamic-reshape*", "probe[devices]")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "cases"
    export(folder, Settings("", examples=2), Selection(cases=CASES))
    return folder


@pytest.fixture
def results(exported: Path, tmp_path: Path) -> Path:
    """The results of a runtime without errors: the expected outputs."""
    results = tmp_path / "results"
    for file in exported.glob("*/*/output_*.pb"):
        target = results / file.relative_to(exported)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return results


def judged(exported: Path, results: Path, *cases: str) -> dict[str, Record]:
    return {record.case: record for record in judge(exported, results, "acme", cases=cases).records}


def folder_of(exported: Path, case: str) -> str:
    return next(entry.models[0].folder for entry in read_index(exported).cases if entry.case == case)


# **** exporting ****


def test_folders_have_the_form_of_onnx(exported: Path) -> None:
    index = read_index(exported)
    assert index.left_out
    assert sum(len(entry.models) for entry in index.cases) == len(list(exported.glob("*/model.onnx")))
    for entry in index.cases:
        for model in entry.models:
            graph = onnx.load(exported / model.folder / "model.onnx").graph
            for number, outputs in enumerate(model.data_sets):
                folder = exported / model.folder / f"test_data_set_{number}"
                assert len(list(folder.glob("input_*.pb"))) == len(graph.input)
                assert len(list(folder.glob("output_*.pb"))) == len(graph.output) == len(outputs)
                names = [
                    onnx.TensorProto.FromString((folder / f"output_{i}.pb").read_bytes()).name
                    for i in range(len(outputs))
                ]
                assert names == [value.name for value in graph.output] == [output.name for output in outputs]


def test_index_has_the_tolerance_of_every_element(exported: Path) -> None:
    (entry,) = (entry for entry in read_index(exported).cases if entry.case == "MatMul[f32,drawn]")
    model = next(model for model in entry.models if isinstance(model.data_sets[0][0].magnitude, str))
    folder, output = exported / model.folder / "test_data_set_0", model.data_sets[0][0]
    expected = read_tensor(folder / "output_0.pb", DType.FLOAT32)
    magnitude = read_tensor(folder / str(output.magnitude), DType.FLOAT64)
    assert magnitude.shape == expected.shape
    allowed = np.maximum(output.atol * magnitude, output.rtol * np.abs(expected))
    assert 0 < allowed.max() < 1e-4


def test_folder_that_is_not_empty_is_left_alone(exported: Path) -> None:
    before = sorted(exported.iterdir())
    with pytest.raises(InputError, match="not an empty folder"):
        export(exported, Settings(""), Selection(cases=("Relu[f32,drawn]",)))
    assert sorted(exported.iterdir()) == before


def test_exporting_needs_a_plugin_that_writes_onnx() -> None:
    with pytest.raises(InputError, match="pip install lite-onnx"):
        writer_of_onnx(PluginManager(list))


# **** judging ****


def test_expected_outputs_pass(exported: Path, results: Path) -> None:
    report = judge(exported, results, "acme", device="phone", stack={"driver": "1"})
    assert {record.status for record in report.records} == {Status.PASSED}
    assert all(record.examples and record.device == "phone" for record in report.records)
    assert report.header["stack"] == {"driver": "1"}
    assert not report.incomplete


def test_wrong_outputs_fail_with_the_name_of_the_case(exported: Path, results: Path) -> None:
    case = "Relu[f32,drawn]"
    name = folder_of(exported, case)
    file = results / name / "test_data_set_0/output_0.pb"
    write_tensor(file, "output_0", read_tensor(file, DType.FLOAT32) + np.float32(1))
    found = judged(exported, results)
    assert [record.case for record in found.values() if record.status is not Status.PASSED] == [case]
    assert found[case].status is Status.FAILED
    assert name in found[case].reason
    assert found[case].measured is not None
    assert "judge" in found[case].repro


def _without_file(folder: Path) -> None:
    (folder / "test_data_set_0/output_0.pb").unlink()


def _of_another_type(folder: Path) -> None:
    file = folder / "test_data_set_0/output_0.pb"
    write_tensor(file, "output_0", read_tensor(file, DType.FLOAT32).astype(np.float64))


def _of_another_shape(folder: Path) -> None:
    file = folder / "test_data_set_0/output_0.pb"
    write_tensor(file, "output_0", read_tensor(file, DType.FLOAT32)[..., np.newaxis])


def _garbage(folder: Path) -> None:
    (folder / "test_data_set_0/output_0.pb").write_bytes(b"\xff" * 40)


def _refused(folder: Path) -> None:
    (folder / "refused.txt").write_text("no such\nkernel")


def _crashed(folder: Path) -> None:
    (folder / "failed.txt").write_text("SIGSEGV")


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (_without_file, Status.FAILED, "there is no output 'output_0'"),
        (_of_another_type, Status.FAILED, "has elements of type DOUBLE, expected FLOAT"),
        (_of_another_shape, Status.FAILED, "has shape"),
        (_garbage, Status.FAILED, "is not a tensor"),
        (_refused, Status.UNSUPPORTED, "no such kernel"),
        (_crashed, Status.FAILED, "SIGSEGV"),
        (shutil.rmtree, Status.SKIPPED, "there is no result"),
    ],
)
def test_results_that_are_no_results(
    exported: Path, results: Path, change: Callable[[Path], None], status: Status, reason: str
) -> None:
    case = "Relu[f32,drawn]"
    change(results / folder_of(exported, case))
    record = judged(exported, results, case)[case]
    assert record.status is status
    assert reason in record.reason


def test_command_writes_reports_and_says_what_is_missing(
    exported: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"--{kind}={tmp_path / f'r.{kind}'}" for kind in ("json", "junit", "html")]
    given = ["judge", str(exported), str(results), "--backend", "acme", "--stack", "driver=24.2", "--quiet", *files]
    assert run_command_line(given) == 0
    assert read_report(tmp_path / "r.json").header["stack"] == {"driver": "24.2"}
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "r.junit").exists()
    shutil.rmtree(results / folder_of(exported, "Relu[f32,drawn]"))
    assert run_command_line(given) == 1
    assert "cases have results" in capsys.readouterr().err


def test_changed_inputs_are_an_error(exported: Path, results: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(exported, tmp_path / "changed")
    file = changed / folder_of(exported, "Relu[f32,drawn]") / "test_data_set_0/input_0.pb"
    write_tensor(file, "input_0", read_tensor(file, DType.FLOAT32) + np.float32(1))
    record = judged(changed, results, "Relu[f32,drawn]")["Relu[f32,drawn]"]
    assert record.status is Status.ERROR
    assert "is not what the suite exports here" in record.reason


def test_folder_of_another_version_is_refused(exported: Path, results: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(exported, tmp_path / "changed")
    index = json.loads((changed / "index.json").read_text())
    index["suite"]["references"] = "0" * 16
    (changed / "index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="exported by another version of the suite .*; other references"):
        judge(changed, results, "acme")


def test_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`lite-conformance export FOLDER` writes one"):
        judge(tmp_path, tmp_path, "acme")


# **** tensors ****


@pytest.mark.parametrize("dtype", list(DType), ids=str)
def test_tensors_are_written_as_onnx_defines_them(dtype: DType, tmp_path: Path) -> None:
    numbers = np.array([[0, 1, 2], [3, 1, 0], [1, 2, 3]])
    array = np.array([["a", "", "ü"]], object) if dtype is DType.STRING else numbers.astype(dtype.numpy)
    write_tensor(tmp_path / "t.pb", "t", array)
    again = read_tensor(tmp_path / "t.pb", dtype)
    assert again.dtype == dtype.numpy
    assert again.tolist() == array.tolist()
    proto = onnx.TensorProto.FromString((tmp_path / "t.pb").read_bytes())
    onnx.checker.check_tensor(proto)
    if not dtype.is_narrow and dtype not in (DType.STRING, DType.BFLOAT16):
        assert numpy_helper.to_array(proto).tolist() == array.tolist()


def test_tensors_of_other_writers_are_read(tmp_path: Path) -> None:
    for dtype, number in ((DType.FLOAT32, onnx.TensorProto.FLOAT), (DType.FLOAT16, onnx.TensorProto.FLOAT16)):
        (tmp_path / "t.pb").write_bytes(onnx.helper.make_tensor("t", number, [2], [1.5, -2]).SerializeToString())
        assert read_tensor(tmp_path / "t.pb", dtype).tolist() == [1.5, -2]
    bits = np.array([1.5, -2], ml_dtypes.bfloat16).view(np.uint16)
    proto = onnx.TensorProto(data_type=onnx.TensorProto.BFLOAT16, dims=[2], int32_data=bits.tolist())
    (tmp_path / "t.pb").write_bytes(proto.SerializeToString())
    assert read_tensor(tmp_path / "t.pb", DType.BFLOAT16).tolist() == [1.5, -2]
