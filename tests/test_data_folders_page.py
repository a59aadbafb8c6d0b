"""Exported cases on ONNX Runtime: by ONNX's own runner, and by the program of docs/data-folders.md."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

import pytest

from lite_conformance.cases.case import Settings
from lite_conformance.data_folders.exporting import export
from lite_conformance.data_folders.judging import judge
from lite_conformance.reports.record import Status
from lite_conformance.run.selection import Selection, parse_level
from worked_pages import FILES, PageRunner, blocks, commands, matches, target_of

pytestmark = pytest.mark.full("conformance")

PAGE = Path(__file__).parents[1] / "docs/data-folders.md"
#: Operators on which ONNX Runtime agrees with the suite.
OPS = ("Add", "Relu", "MatMul", "Conv", "Concat", "Transpose", "ReduceSum", "Softmax", "Sigmoid", "MaxPool", "Gather")
#: Cases of these in which it does not: products with a size of zero or with NaN, subnormal numbers, ...
EXCEPT = (
    "*nan*",
    "*subnormal*",
    "*infinit*",
    "*special*",
    "*empty*",
    "*large*",
    "*long*",
    "*beyond*",
    "*steps-over*",
    "*over-nothing*",
    "*odd-channels*",
)


def test_page(tmp_path: Path) -> None:
    runner = PageRunner(tmp_path)
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.language in FILES:
            runner.write(block)
        elif block.language == "console":
            for command, shown in commands(block):
                printed = runner.run_command(command)
                assert matches(shown, printed), f"line {block.line}: `{command}` printed\n{printed}"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "node"
    selection = Selection(parse_level("L2-L2"), (), OPS, ("f32",), EXCEPT)
    index = export(folder, Settings("", examples=5), selection)
    assert len(index.cases) > 200
    return folder


def test_onnx_runs_the_folders(exported: Path) -> None:
    """The runner of the ONNX project loads and runs them, and its tolerance accepts the expected outputs."""
    import onnxruntime.backend
    from onnx.backend.test.loader import load_model_tests
    from onnx.backend.test.runner import Runner

    cases = load_model_tests(data_dir=str(exported.parent), kind=exported.name)
    assert len(cases) == len(list(exported.glob("*/model.onnx")))
    runner = Runner(onnxruntime.backend, __name__)
    runner.enable_report = False
    runner._test_items.clear()
    for case in cases:
        runner._add_model_test(case, "Exported")
    runner.exclude("cuda")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(runner.test_cases["OnnxBackendExportedModelTest"])
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun >= len(cases)
    assert [test.id() for test, _ in (*result.errors, *result.failures)] == []


def test_results_of_onnxruntime_pass_and_a_wrong_one_fails(exported: Path, tmp_path: Path) -> None:
    program = next(b for b in blocks(PAGE.read_text(encoding="utf-8")) if b.language in FILES)
    (tmp_path / target_of(program)[0]).write_text(program.text)
    results = tmp_path / "results"
    subprocess.run([sys.executable, tmp_path / target_of(program)[0], exported, results], check=True)
    report = judge(exported, results, "ort")
    assert {record.case for record in report.records if record.status.is_bad} == set()
    assert report.counts()[Status.PASSED] > 200
    damaged = results / "test_Relu_f32_drawn-1/test_data_set_0/output_0.pb"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 0x40  # the highest bit of an exponent
    damaged.write_bytes(bytes(content))
    wrong = [record for record in judge(exported, results, "ort").records if record.status is not Status.PASSED]
    assert [(record.case, record.status) for record in wrong if record.status.is_bad] == [
        ("Relu[f32,drawn]", Status.FAILED)
    ]
    assert "test_Relu_f32_drawn-1" in wrong[0].reason
