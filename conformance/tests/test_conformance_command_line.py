"""The command line: exit codes, messages, and remaining processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ProcessLog, wait_for_end

from lite_conformance import read_report
from lite_conformance.cli import main, run_command_line

HERE = Path(__file__).parent
WRONG = f"{HERE / 'wrong_backends.py'}:backend_"
HOSTILE = f"{HERE / 'hostile_backends.py'}:"
COMMAND = [sys.executable, "-m", "lite_conformance"]
RELU = ("--case", "Relu[f32,drawn]", "--examples", "2")


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command, which must not print a traceback of the suite."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=100, **options)
    assert "Traceback" not in done.stdout + done.stderr
    return done


# **** exit codes ****


def test_passing_run_writes_the_reports(tmp_path: Path) -> None:
    reports = ("--json", "r.json", "--junit", "r.xml", "--html", "r.html")
    done = run("--backend", "host", *RELU, "--examples", "100", "--jobs", "2", *reports, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "host: 1 passed, 0 failed" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr  # no colours without a terminal
    assert "Relu[f32,drawn]" not in done.stderr  # and no progress
    assert read_report(tmp_path / "r.json").header["backend"] == "host"
    assert {p.name for p in tmp_path.iterdir()} == {"r.json", "r.xml", "r.html"}
    again = run("report", "r.json", "r.json", "-o", "both.html", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "wrote both.html\n")
    done = run("report", "r.json", "-o", "nowhere/both.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_failure_writes_its_script(tmp_path: Path) -> None:
    command = ("-b", f"{WRONG}half_precision", "--case", "Add[f32,2x3x4x5,3x1x1,channel]")
    done = run(*command, "--isolate", "never", "--repro", "scripts", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED Add[f32,2x3x4x5,3x1x1,channel]: " in done.stdout
    assert f"next: lite-conformance --backend {WRONG}half_precision --case 'Add[" in done.stdout
    assert "failed: Add[f32,2x3x4x5,3x1x1,channel]: " in done.stderr
    assert len(list((tmp_path / "scripts").glob("repro_Add*.py"))) == 1


def test_exit_code_if_nothing_was_executed() -> None:
    done = run("-b", f"{WRONG}right", "--case", "Exp[f32,drawn]", "--case", "Conv[f32,drawn]")
    assert done.returncode == 4
    assert "2 unsupported" in done.stdout


def test_exit_code_of_a_crash(tmp_path: Path) -> None:
    done = run("-b", f"{HOSTILE}dies_in_compile", *RELU, "--quiet")
    assert done.returncode == 5
    assert re.search(r"CRASHED Relu\[f32,drawn\]: .*SIGKILL", done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["exits_in_run", "exits_in_supports", "probe_raises"])
def test_system_exit_of_a_backend_does_not_set_the_exit_code(name: str) -> None:
    done = run("-b", f"{HOSTILE}{name}", *RELU, "--isolate", "never")
    assert done.returncode == 1
    assert "SystemExit" in done.stdout


def test_command_ends_despite_endless_threads() -> None:
    done = run("-b", f"{HOSTILE}endless_threads", "--case", "Add[f32,2x3]", "--isolate", "never")
    assert done.returncode == 0
    assert "hostile: 1 passed" in done.stdout
    assert "threads" in done.stderr


# **** unavailable and invalid backends ****


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backends")
    (folder / "raises.py").write_text("raise ValueError('no luck')\n")
    (folder / "leaves.py").write_text("raise SystemExit(0)\n")
    (folder / "broken.py").write_text("def (:\n")
    (folder / "things.py").write_text(
        "from lite_core.backend import Unavailable\n"
        "from lite_core.builtin import HostBackend\n"
        "number = 5\n"
        "def make():\n"
        "    raise OSError('no library')\n"
        "class absent(HostBackend):\n"
        "    name = 'absent'\n"
        "    def probe(self):\n"
        "        return Unavailable('no driver', 'install one')\n"
    )
    metadata = folder / "lite_broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lite.plugins]\nbroken = raises\n")
    (folder / "text.onnx").write_text("this is no model")
    return folder


@pytest.mark.parametrize(
    ("backend", "code", "message"),
    [
        ("no_such_backend", 3, "'no_such_backend'"),
        ("host:7", 3, "device 7"),
        ("things:absent", 3, "no driver. install one"),
        ("nowhere.py:backend", 2, "'nowhere.py'"),
        ("nowhere:backend", 2, "ModuleNotFoundError: No module named 'nowhere'"),
        ("things.py:nothing", 2, "'nothing'"),
        ("things:number", 2, "name, probe, supports, compile"),
        ("things.py:make", 2, "OSError: no library"),
        ("raises.py:backend", 2, "ValueError: no luck"),
        ("leaves:backend", 2, "SystemExit: 0"),
        ("broken.py:backend", 2, "SyntaxError: "),
    ],
)
def test_unusable_backends_are_rejected(
    folder: Path,
    backend: str,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    assert run_command_line(["-b", backend, *RELU, "--isolate", "never"]) == code
    printed = capsys.readouterr()
    assert "error: " in printed.err
    assert message in printed.err
    assert printed.out == ""


def test_failed_plugin_is_named_if_its_backend_is_missing(folder: Path) -> None:
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = run("-b", "broken", *RELU, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 3
    assert "plugin 'broken' (lite-broken 1.0)" in done.stderr
    assert "no luck" in done.stderr


def test_worker_reports_unusable_backends(folder: Path) -> None:
    done = run("-b", "raises.py:backend", *RELU, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ValueError: no luck" in done.stderr
    done = run("-b", f"{HOSTILE}memory_raises", *RELU)
    assert done.returncode == 1
    assert re.search(r"probe\[open\]: .*RuntimeError: no context", done.stdout)


# **** usage ****


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--backend NAME"),
        (("--level", "L9"), "'L9'"),
        (("--level", "L4-L2"), "'L4-L2'"),
        (("--seed", "-1"), "--seed"),
        (("--examples", "0"), "--examples"),
        (("--jobs", "0"), "--jobs"),
        (("--timeout", "0"), "--timeout"),
        (("--timeout", "nan"), "nan"),
        (("--timeout", "inf"), "inf"),
        (("--model", "nowhere.onnx"), "nowhere.onnx"),
        (("--node-data", "nowhere"), "nowhere"),
        (("--node-data", "."), "node data"),
        (("--expectations", "nowhere.toml"), "nowhere.toml"),
        (("--isolate", "perhaps"), "perhaps"),
        (("--json", "no/such/folder/r.json"), "no/such/folder"),
        (("--html", "."), "'.'"),
        (("--repro", "text.onnx"), "text.onnx"),
        (("--repro", "text.onnx/scripts"), "'text.onnx/scripts'"),
        (("--case", "Relu[f32,nothing]"), "'Relu[f32,nothing]'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_reported_before_the_run(
    folder: Path,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    backend = ("--backend", "host") if arguments else ()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as end:
            main([*(() if "--case" in arguments else RELU), *backend, *arguments, "--quiet"])
    finally:
        signal.signal(signal.SIGTERM, handler)
    printed = capsys.readouterr()
    assert end.value.code == 2, printed
    assert message in printed.err
    assert printed.out == ""


def test_read_only_folder_is_reported_before_the_run(tmp_path: Path) -> None:
    protected = tmp_path / "protected"
    protected.mkdir(mode=0o500)
    if os.access(protected, os.W_OK):
        pytest.skip("this user can write to read-only folders")
    for option in ("--json", "--repro"):
        done = run("-b", "host", *RELU, option, str(protected / "r"))
        assert done.returncode == 2
        assert str(protected) in done.stderr


def test_invalid_model_file_is_an_error_of_its_case(folder: Path) -> None:
    done = run("-b", "host", "--case", "model[text.onnx]", "--model", "text.onnx", "--isolate", "never", cwd=folder)
    assert done.returncode == 1
    assert "ERROR model[text.onnx]: " in done.stdout


# **** the list ****


def test_list_of_cases() -> None:
    done = run("--list", "--case", "Relu[f32,*]", "--case", "probe[*]")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "L0 probe[devices]" in lines
    assert "L2 Relu[f32,drawn]" in lines
    assert {line[:2] for line in lines} == {"L0", "L2"}


def test_closed_output_pipe() -> None:
    command = f"{' '.join(COMMAND)} --list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


# **** an interrupt ****


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupt_ends_all_processes(tmp_path: Path, number: signal.Signals) -> None:
    log = ProcessLog(tmp_path)
    command = [*COMMAND, "-b", f"{HOSTILE}hangs", "--case", "Add[f32,*]", "--jobs", "2", "--timeout", "600"]
    environment = {**os.environ, "HOSTILE_PIDS": str(log.path)}
    # Background processes of a shell ignore SIGINT, which their children inherit.
    listens: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    output = subprocess.PIPE
    with subprocess.Popen(command, stdout=output, stderr=output, text=True, env=environment, **listens) as process:
        try:
            log.wait_for(2)
            process.send_signal(number)
            errors = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert process.returncode == (-9 if number is signal.SIGKILL else 1)
    assert "Traceback" not in errors
    assert number is signal.SIGKILL or "error: interrupted" in errors
    assert not wait_for_end(log.numbers())
    log.close()


# **** damaged reports ****

GOOD = {"case": "a", "level": 0, "suite": "probe", "status": "passed"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "r.json"),
        ("[]", "version 1"),
        ({"schema_version": 2, "records": []}, "2"),
        ({"records": []}, "None"),
        ({"schema_version": 1}, "r.json"),
        ({"schema_version": 1, "records": [GOOD, 5]}, "record 2"),
        ({"schema_version": 1, "records": [{"case": "a"}]}, "record 1"),
        ({"schema_version": 1, "records": [{**GOOD, "status": "fine"}]}, "'fine'"),
        ({"schema_version": 1, "records": [{**GOOD, "level": "0"}]}, "'0'"),
        ({"schema_version": 1, "records": [{**GOOD, "reason": 5}]}, "reason"),
        ({"schema_version": 1, "records": [{**GOOD, "measured": 5}]}, "record 1"),
        ({"schema_version": 1, "records": [{**GOOD, "measured": {"max_abs": "much"}}]}, "'much'"),
        ({"schema_version": 1, "records": [{**GOOD, "tolerance": {"rtol": 0, "atol": 0, "default": [0]}}]}, "record 1"),
        ({"schema_version": 1, "header": [], "records": []}, "header"),
        ({"schema_version": 1, "seconds": "long", "records": []}, "seconds"),
    ],
)
def test_invalid_reports_are_rejected(
    tmp_path: Path, content: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    assert run_command_line(["report", str(file), "-o", str(tmp_path / "r.html")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
