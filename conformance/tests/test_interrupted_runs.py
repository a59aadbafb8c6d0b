"""Runs of the command that are interrupted by signals, and how they are resumed; with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from processes import ProcessLog, wait_for_end

from lite_conformance import read_report

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

COMMAND = [sys.executable, "-m", "lite_conformance"]
TIMEOUT_SECONDS = 120

# A right backend. While the file "hold" is there, it stops at Relu and writes its process number to a pipe: everything
# before Relu has ended then, and nothing after it.
BACKEND = """
import os, threading
from lite_core.backend import Device, No, Yes
from lite_core.builtin import HostBackend
from lite_core.ops.evaluate import evaluate_graph

class Executable:
    scratch_bytes = 0
    def __init__(self, graph):
        self.graph = graph
    def run(self, inputs, outputs, scratch):
        if self.graph.nodes[0].op == "Relu" and os.path.exists("hold"):
            with open("pids", "a") as file:
                file.write(f"{os.getpid()}\\n")
            threading.Event().wait()
        for buffer, result in zip(outputs, evaluate_graph(self.graph, [b.data for b in inputs])):
            buffer.store(result)

class Held(HostBackend):
    name = "held"
    def probe(self):
        return [Device("held", name="waits")]
    def supports(self, node, device):
        return Yes() if node.op in ("Abs", "Relu", "Tanh") and not node.domain else No("not here")
    def compile(self, part, device, options):
        return Executable(part.graph)

backend = Held()
"""
CASES = ("--case", "Abs[f32,*x*]", "--case", "Relu[f32,2x3x7]", "--case", "Tanh[f32,2x3x7]")
ARGUMENTS = ("-b", "held.py:backend", *CASES, "--jobs", "1", "--timeout", "600")


class Folder:
    """A folder with the backend, in which the command is run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "held.py").write_text(BACKEND)
        (path / "hold").touch()
        self.environment = {**os.environ, "LITE_CACHE_DIR": str(path / "cache")}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )

    def interrupt(self, number: signal.Signals, *arguments: str) -> tuple[int, str, str]:
        """Run the command until the backend holds, send a signal, and return exit code, output and errors."""
        log = ProcessLog(self.path)
        with subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                log.wait_for(1)
                process.send_signal(number)
                output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
            finally:
                process.kill()
        assert wait_for_end(log.numbers()) == []
        log.close()
        (self.path / "pids").unlink()
        (self.path / "hold").unlink()
        return process.returncode, output, errors


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


REPORTS = ("--json", "r.json", "--html", "r.html", "--junit", "r.xml")


@pytest.mark.full("conformance")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_writes_its_reports_and_goes_on(folder: Folder, number: signal.Signals) -> None:
    code, output, errors = folder.interrupt(number, *ARGUMENTS, *REPORTS)
    report = read_report(folder.path / "r.json")
    ran = len(report.records)
    said = f"interrupted, {ran} of {ran + 2} cases ran"
    assert (code, report.incomplete) == (1, said)
    assert {r.op for r in report.records} == {"Abs"}
    assert f"held: {ran} passed, 0 failed" in output
    assert said in output
    assert f"error: {said}" in errors
    assert "--resume" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert said in (folder.path / "r.html").read_text()
    error = ElementTree.parse(folder.path / "r.xml").getroot().find("testsuite[@name='run']/testcase/error")
    assert error is not None
    assert error.get("message") == said

    done = folder.run(*ARGUMENTS, *REPORTS, "--resume")
    assert done.returncode == 0, done.stderr
    whole = read_report(folder.path / "r.json")
    assert [r.op for r in whole.records[-2:]] == ["Relu", "Tanh"]
    assert [r.to_dict() for r in whole.records[:ran]] == [r.to_dict() for r in report.records]
    assert whole.header["resumed"] == f"{ran} of {ran + 2} cases ran before"
    assert {p.name for p in folder.path.iterdir()} == {"held.py", "cache", "r.json", "r.html", "r.xml"}


@pytest.mark.full("conformance")
def test_killed_run_goes_on(folder: Folder) -> None:
    code, _, _ = folder.interrupt(signal.SIGKILL, *ARGUMENTS, "--json", "r.json")
    assert code == -signal.SIGKILL
    lines = (folder.path / "r.json.journal").read_text().splitlines()
    ran = [json.loads(line)["case"] for line in lines[1:]]
    assert ran
    assert all(name.startswith("Abs[") for name in ran)

    refused = folder.run(*ARGUMENTS, "--json", "r.json", "--resume", "--seed", "7")
    assert refused.returncode == 2
    assert "seed (0 before, 7 now)" in refused.stderr
    refused = folder.run("-b", "held.py:backend", *CASES[:4], "--jobs", "1", "--json", "r.json", "--resume")
    assert "selection: cases" in refused.stderr

    done = folder.run(*ARGUMENTS, "--json", "r.json", "--resume")
    assert done.returncode == 0, done.stderr
    records = read_report(folder.path / "r.json").records
    assert [r.case for r in records[: len(ran)]] == ran
    assert [r.op for r in records[len(ran) :]] == ["Relu", "Tanh"]
    assert not (folder.path / "r.json.journal").exists()


@pytest.mark.full("conformance")
def test_run_without_a_report_goes_on_from_the_cache_folder(folder: Folder) -> None:
    code, _, errors = folder.interrupt(signal.SIGINT, *ARGUMENTS)
    assert code == 1
    assert errors.splitlines()[-1].endswith("--timeout 600 --resume")
    done = folder.run(*ARGUMENTS, "--resume")
    assert done.returncode == 0, done.stderr
    assert "nothing to resume" not in done.stderr
    left = {p.name.partition("-")[0] for p in (folder.path / "cache" / "conformance").iterdir()}
    assert left == {"failed"}
    again = folder.run(*ARGUMENTS, "--resume")
    assert again.returncode == 0
    assert "nothing to resume" in again.stderr


@pytest.mark.full("conformance")
def test_last_failed_and_maxfail(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "hold").unlink()
    text = BACKEND.replace("buffer.store(result)", "buffer.store(result + (self.graph.nodes[0].op == 'Abs'))")
    (tmp_path / "held.py").write_text(text)
    done = folder.run(*ARGUMENTS, "--maxfail", "2")
    assert done.returncode == 1
    assert "error: stopped after 2 bad case(s), 2 of" in done.stderr
    done = folder.run(*ARGUMENTS, "--resume")
    assert done.returncode == 1
    failed = [line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    listed = folder.run("-b", "held.py:backend", "--last-failed", "--list")
    assert [line.split()[1] for line in listed.stdout.splitlines()] == failed
    (tmp_path / "held.py").write_text(BACKEND)
    done = folder.run("-b", "held.py:backend", "--last-failed", "--jobs", "1")
    assert done.returncode == 0
    assert f"held: {len(failed)} passed, 0 failed" in done.stdout
    done = folder.run("-b", "held.py:backend", "--last-failed")
    assert (done.returncode, done.stderr) == (4, "no case of held.py:backend failed when it ran last\n")
