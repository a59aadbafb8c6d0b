"""The scripts that repeat failures: for every kind of graph, on wrong and correct backends, without the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.compare import allowed
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Replay
from lite_conformance.judge.tolerances import SUM, Numerics
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.repro import write_script
from lite_conformance.run.runner import run_suite
from lite_conformance.run.selection import Selection
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph

HERE = Path(__file__).parent
WRONG = f"{HERE / 'wrong_backends.py'}:backend_"

# A backend that supports every operator, and whose results are too large by one.
ONE_MORE = """
import os
import numpy as np
from lite_core.backend import Device, Yes
from lite_core.builtin import HostBackend
from lite_core.ops.evaluate import evaluate_graph

class Executable:
    scratch_bytes = 0
    def __init__(self, graph):
        self.graph = graph
    def run(self, inputs, outputs, scratch):
        for buffer, result in zip(outputs, evaluate_graph(self.graph, [b.data for b in inputs])):
            if os.environ.get("RIGHT") != "1":
                result = ~result if result.dtype == bool else (result + np.ones((), result.dtype)).astype(result.dtype)
            buffer.store(result)

class OneMore(HostBackend):
    name = "one_more"
    def probe(self):
        return [Device("one_more", name="wrong on purpose")]
    def supports(self, node, device):
        return Yes()
    def compile(self, part, device, options):
        return Executable(part.graph)

backend = OneMore()
"""

# Runs scripts with the suite and its dependencies blocked.
BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("lite_conformance", "hypothesis", "click", "pytest"):
            raise ImportError(f"{name} is not needed")
sys.meta_path.insert(0, Block())
import runpy
for script in sys.argv[1:]:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        print(f"{script}: {end.code}")
"""


def run_scripts(scripts: list[Path], **environment: str) -> dict[str, int]:
    """Run scripts in one process that cannot import the suite; return their exit codes by name."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *map(str, scripts)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=scripts[0].parent,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    lines = [line.rpartition(": ") for line in done.stdout.splitlines() if ".py: " in line]
    return {Path(name).stem: int(code) for name, _, code in lines}


#: Cases of all kinds of graphs: constants, tensors and types as attributes, several outputs, scalars, bodies that
#: capture values, and types that NPZ files do not support.
KINDS = [
    "Conv[f32,*]",
    "MatMul[bf16,*]",
    "Add[f16,*]",
    "Cast[f32,*]",
    "Split[f32,*]",
    "TopK[f32,*]",
    "ConstantOfShape[*]",
    "If[f32,*]",
    "Loop[f32,*]",
    "Scan[f32,*]",
    "QuantizeLinear[*]",
    "Not[bool,*]",
    "NonZero[f32,*]",
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The scripts of a run on the wrong backend, with a few cases of each kind."""
    folder = tmp_path_factory.mktemp("repro")
    (folder / "one_more.py").write_text(ONE_MORE)
    spec = f"{folder / 'one_more.py'}:backend"
    settings = Settings(spec, examples=2)
    every = list(all_cases(settings))
    chosen = [case.name for kind in KINDS for case in Selection(cases=[kind]).choose(settings)[:3]]
    chosen += [case.name for case in every if case.suite == "graphs"][:40:5]
    report = run_suite(settings, Selection(cases=chosen), repro=str(folder / "out"), isolate=False)
    failed = {r.op if r.suite == "ops" else r.suite for r in report.records if r.status is Status.FAILED}
    assert failed == {"graphs", *(kind.partition("[")[0] for kind in KINDS)}
    return sorted((folder / "out").glob("*.py"))


def test_scripts_fail_on_the_wrong_backend(scripts: list[Path]) -> None:
    codes = run_scripts(scripts)
    assert codes == {script.stem: 1 for script in scripts}


def test_scripts_pass_on_the_correct_backend(scripts: list[Path]) -> None:
    codes = run_scripts(scripts, RIGHT="1")
    assert codes == {script.stem: 0 for script in scripts}


def test_script_checks_each_element_with_its_own_tolerance(tmp_path: Path) -> None:
    """The tolerance of the largest sum must not apply to the smallest one."""
    x = np.array([[1e6, 1e6], [1e-3, 1e-3]], np.float32)
    builder = GraphBuilder("g")
    graph_input = builder.input("x", "float32", x.shape)
    builder.output(builder.add("MatMul", [graph_input, builder.constant(np.ones((2, 1), np.float32))]), "y")
    script = write(tmp_path, builder.build(), [x], SUM, settings=one_more(tmp_path, "result + 0.01"))
    assert run_scripts([script]) == {script.stem: 1}
    assert run_scripts([script], RIGHT="1") == {script.stem: 0}


def test_script_allows_infinities_and_flushed_subnormal_numbers(tmp_path: Path) -> None:
    """An infinity beyond the range of float16, and a zero for a subnormal number, are correct."""
    x = np.array([300, 2e-4, -300], np.float16)
    builder = GraphBuilder("g")
    value = builder.input("x", "float16", x.shape)
    builder.output(builder.add("Mul", [value, value]), "y")
    script = write(
        tmp_path,
        builder.build(),
        [x],
        SUM,
        settings=one_more(tmp_path, "np.where(abs(result) < 1e-4, 0, result).astype(result.dtype)"),
    )
    assert run_scripts([script]) == {script.stem: 0}


def test_script_for_names_that_are_not_identifiers_or_file_names(tmp_path: Path) -> None:
    x = np.ones(2, np.float32)
    builder = GraphBuilder('a \\N{graph} """')
    value = builder.input("x²/0:é ", "float32", [2])
    builder.output(builder.add("Relu", [value]), "class")
    case = 'model[C:\\Users\\new """odd""" ' + "long/" * 60 + "]"
    script = write(tmp_path, builder.build(), [x], SUM, settings=one_more(tmp_path, "result + 1"), case=case)
    assert len(script.name) < 150
    assert run_scripts([script]) == {script.stem: 1}
    assert run_scripts([script], RIGHT="1") == {script.stem: 0}


def test_script_for_a_backend_from_a_module_or_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_more(tmp_path, "result + 1")
    monkeypatch.chdir(tmp_path)
    x = np.ones(2, np.float32)
    builder = GraphBuilder("g")
    builder.output(builder.add("Relu", [builder.input("x", "float32", (2,))]), "y")
    graph = builder.build()
    for spec, code in (("one_more:backend", 1), ("one_more:OneMore", 1), ("host", 0), ("host:0", 0)):
        script = write(tmp_path / "scripts", graph, [x], SUM, settings=Settings(spec), case=f"Relu[{spec}]")
        assert run_scripts([script]) == {script.stem: code}


def test_script_of_a_crash_is_written(tmp_path: Path) -> None:
    # Old versions of hypothesis rarely draw the empty tensor that crashes this backend.
    settings = Settings(f"{WRONG}segfaults", examples=500)
    report = run_suite(settings, Selection(cases=["Add[f32,drawn]"]), repro=str(tmp_path / "new" / "folder"))
    (record,) = report.records
    assert record.status is Status.CRASHED
    (script,) = (tmp_path / "new" / "folder").glob("*.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True)
    assert done.returncode < 0  # the script crashes as the worker did


# A backend that cannot compile Relu; it raises, crashes or hangs, as the environment says.
NO_RELU = """
import os, signal, threading
from lite_core.backend import Device, Yes
from lite_core.builtin import HostBackend

class NoRelu(HostBackend):
    name = "no_relu"
    def probe(self):
        return [Device("no_relu", name="cannot compile")]
    def supports(self, node, device):
        return Yes()
    def compile(self, part, device, options):
        how = os.environ.get("HOW", "raises")
        if how == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "hangs":
            threading.Event().wait()
        if how == "raises":
            raise ValueError("no luck with " + part.graph.nodes[0].op)
        return super().compile(part, device, options)

backend = NoRelu()
"""


@pytest.mark.parametrize(("case", "op"), [("Relu[f32,2x3x7]", "Relu"), ("graph[f32,residual-block]", "")])
def test_script_of_a_failed_compilation(tmp_path: Path, case: str, op: str) -> None:
    (tmp_path / "no_relu.py").write_text(NO_RELU)
    settings = Settings(f"{tmp_path / 'no_relu.py'}:backend")
    (record,) = run_suite(settings, Selection(cases=[case]), repro=str(tmp_path / "out"), isolate=False).records
    assert record.status is Status.FAILED
    assert f"compile() raised ValueError: no luck with {op}" in record.reason
    (script,) = (tmp_path / "out").glob("*.py")
    assert "it still cannot be compiled" in script.read_text()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no luck with" in done.stderr
    assert run_scripts([script], HOW="works") == {}  # no exit code: it ends normally


@pytest.mark.full("conformance")
@pytest.mark.parametrize(("how", "status"), [("crashes", Status.CRASHED), ("hangs", Status.HUNG)])
def test_script_of_a_compilation_that_crashes_or_hangs(
    tmp_path: Path, how: str, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_relu.py").write_text(NO_RELU)
    settings = Settings(f"{tmp_path / 'no_relu.py'}:backend")
    monkeypatch.setenv("HOW", how)
    report = run_suite(settings, Selection(cases=["Relu[f32,2x3x7]"]), repro=str(tmp_path / "out"), timeout=2.0)
    assert [r.status for r in report.records] == [status]
    (script,) = (tmp_path / "out").glob("*.py")
    assert "it still cannot be compiled" in script.read_text()
    if how == "crashes":
        assert subprocess.run([sys.executable, str(script)], capture_output=True).returncode < 0


def test_unwritable_repro_folder_does_not_change_the_status(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(f"{WRONG}half_precision")
    record: Record
    selection = Selection(cases=["Add[f32,2x3]"])
    (record,) = run_suite(settings, selection, repro=str(tmp_path / "file"), isolate=False).records
    assert record.status is Status.FAILED
    assert "could not be written" in record.details


def one_more(folder: Path, wrong: str) -> Settings:
    """Write the backend with another error, and return settings for it."""
    usual = "~result if result.dtype == bool else (result + np.ones((), result.dtype)).astype(result.dtype)"
    assert usual in ONE_MORE
    (folder / "one_more.py").write_text(ONE_MORE.replace(usual, wrong))
    return Settings(f"{folder / 'one_more.py'}:backend")


def write(
    folder: Path, graph: Graph, inputs: list[Array], numerics: Numerics, *, settings: Settings, case: str = "case"
) -> Path:
    pairs = [allowed(e, 1e-6, 1e-6) for e in expect(graph, inputs, numerics)]
    return write_script(folder, case, settings, Replay(graph, inputs, [t for t, _ in pairs], [r for _, r in pairs]))
