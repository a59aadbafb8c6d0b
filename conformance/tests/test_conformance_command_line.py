"""The command line as a user starts it: exit codes, messages, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lite_conformance import read_report
from lite_conformance.cli import _main, main

HERE = Path(__file__).parent
WRONG = f"{HERE / 'wrong_backends.py'}:backend_"
HOSTILE = f"{HERE / 'hostile_backends.py'}:"
COMMAND = [sys.executable, "-m", "lite_conformance"]
RELU = ("--case", "Relu[f32,drawn]", "--examples", "2")


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it; the suite's own traceback is never an answer."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=100, **options)
    assert "Traceback" not in done.stdout + done.stderr
    return done


# **** exit codes ****


def test_all_passed_and_the_reports(tmp_path: Path) -> None:
    reports = ("--json", "r.json", "--junit", "r.xml", "--html", "r.html")
    done = run("--backend", "host", *RELU, "--jobs", "2", *reports, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "host: 1 passed, 0 failed" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr  # no colours where nobody looks
    assert "Relu[f32,drawn]" not in done.stderr  # and no progress
    assert read_report(tmp_path / "r.json").header["backend"] == "host"
    assert {p.name for p in tmp_path.iterdir()} == {"r.json", "r.xml", "r.html"}
    again = run("report", "r.json", "r.json", "-o", "both.html", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "wrote both.html\n")
    done = run("report", "r.json", "-o", "nowhere/both.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no folder" in done.stderr


def test_a_failure_and_its_script(tmp_path: Path) -> None:
    command = ("-b", f"{WRONG}half_precision", "--case", "Add[f32,2x3x4x5,3x1x1,channel]")
    done = run(*command, "--isolate", "never", "--repro", "scripts", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAILED Add[f32,2x3x4x5,3x1x1,channel]: " in done.stdout
    assert f"next: lite-conformance --backend {WRONG}half_precision --case 'Add[" in done.stdout
    assert "failed: Add[f32,2x3x4x5,3x1x1,channel]: " in done.stderr
    assert len(list((tmp_path / "scripts").glob("repro_Add*.py"))) == 1


def test_nothing_was_executed() -> None:
    done = run("-b", f"{WRONG}right", "--case", "Exp[f32,drawn]", "--case", "Conv[f32,drawn]")
    assert done.returncode == 4
    assert "2 unsupported" in done.stdout


def test_a_crash(tmp_path: Path) -> None:
    done = run("-b", f"{HOSTILE}dies_in_compile", *RELU, "--quiet")
    assert done.returncode == 5
    assert "CRASHED Relu[f32,drawn]: the process was ended by SIGKILL" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["exits_in_run", "exits_in_supports", "probe_raises"])
def test_a_backend_that_leaves_does_not_decide_the_exit_code(name: str) -> None:
    done = run("-b", f"{HOSTILE}{name}", *RELU, "--isolate", "never")
    assert done.returncode == 1
    assert "raised SystemExit" in done.stdout


def test_threads_that_never_end_do_not_keep_the_command() -> None:
    done = run("-b", f"{HOSTILE}endless_threads", "--case", "Add[f32,2x3]", "--isolate", "never")
    assert done.returncode == 0
    assert "hostile: 1 passed" in done.stdout
    assert "note: threads that the backend started do not end" in done.stderr


# **** what is not available, and what is not a backend ****


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
        ("nobody", 3, "backend 'nobody' is not installed (here are: "),
        ("host:7", 3, "backend 'host' has no device 7; it has: host"),
        ("things:absent", 3, "backend 'absent' is not available: no driver. install one"),
        ("nowhere.py:backend", 2, "there is no file 'nowhere.py'"),
        ("nowhere:backend", 2, "module 'nowhere' cannot be used: ModuleNotFoundError: No module named 'nowhere'"),
        ("things.py:nothing", 2, "module 'things.py' has no attribute 'nothing'"),
        ("things:number", 2, "things:number is not a backend: it lacks name, probe, supports, compile"),
        ("things.py:make", 2, "things.py:make() cannot be used: OSError: no library"),
        ("raises.py:backend", 2, "file 'raises.py' cannot be used: ValueError: no luck"),
        ("leaves:backend", 2, "module 'leaves' cannot be used: SystemExit: 0"),
        ("broken.py:backend", 2, "file 'broken.py' cannot be used: SyntaxError: "),
    ],
)
def test_what_cannot_be_tested(
    folder: Path,
    backend: str,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    assert _main(["-b", backend, *RELU, "--isolate", "never"]) == code
    told = capsys.readouterr()
    assert f"error: {message}" in told.err
    assert told.out == ""


def test_a_plugin_that_fails_is_named_where_its_backend_is_missed(folder: Path) -> None:
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = run("-b", "broken", *RELU, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 3
    assert "plugin 'broken' (lite-broken 1.0)" in done.stderr
    assert "no luck" in done.stderr


def test_the_worker_tells_the_same(folder: Path) -> None:
    done = run("-b", "raises.py:backend", *RELU, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: file 'raises.py' cannot be used: ValueError: no luck" in done.stderr
    done = run("-b", f"{HOSTILE}memory_raises", *RELU)
    assert done.returncode == 1
    assert (
        "probe[open]: while the backend was opened: memory() of hostile raised RuntimeError: no context" in done.stdout
    )


# **** usage ****


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say which backend: --backend NAME; `lite backends` shows those that are installed"),
        (("--level", "L9"), "a level is L0 to L5 (all up to it) or a range such as L2-L3, is 'L9'"),
        (("--level", "L4-L2"), "is 'L4-L2'"),
        (("--seed", "-1"), "--seed"),
        (("--examples", "0"), "--examples"),
        (("--jobs", "0"), "--jobs"),
        (("--timeout", "0"), "--timeout"),
        (("--timeout", "nan"), "timeout must be a number of seconds above 0, is nan"),
        (("--timeout", "inf"), "is inf"),
        (("--model", "nowhere.onnx"), "nowhere.onnx"),
        (("--node-data", "nowhere"), "nowhere"),
        (("--node-data", "."), "node data"),
        (("--expectations", "nowhere.toml"), "nowhere.toml"),
        (("--isolate", "perhaps"), "perhaps"),
        (("--json", "no/such/folder/r.json"), "there is no folder"),
        (("--html", "."), "'.' is a directory"),
        (("--repro", "text.onnx"), "text.onnx"),
        (("--repro", "text.onnx/scripts"), "cannot be made"),
        (("--case", "Relu[f32,nothing]"), "no case is called 'Relu[f32,nothing]'; near it are: Relu["),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_said_before_anything_runs(
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
    told = capsys.readouterr()
    assert end.value.code == 2, told
    assert message in told.err
    assert told.out == ""


def test_a_protected_folder_is_said_before_the_run(tmp_path: Path) -> None:
    protected = tmp_path / "protected"
    protected.mkdir(mode=0o500)
    if os.access(protected, os.W_OK):
        pytest.skip("nothing is protected from this user")
    for option in ("--json", "--repro"):
        done = run("-b", "host", *RELU, option, str(protected / "r"))
        assert done.returncode == 2
        assert "cannot be" in done.stderr


def test_a_file_that_is_no_model_is_an_error_of_that_case(folder: Path) -> None:
    done = run("-b", "host", "--case", "model[text.onnx]", "--model", "text.onnx", "--isolate", "never", cwd=folder)
    assert done.returncode == 1
    assert "ERROR model[text.onnx]: " in done.stdout


# **** the list ****


def test_the_list() -> None:
    done = run("--list", "--case", "Relu[f32,*]", "--case", "probe[*]")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "L0 probe[devices]" in lines
    assert "L2 Relu[f32,drawn]" in lines
    assert {line[:2] for line in lines} == {"L0", "L2"}


def test_a_reader_that_has_seen_enough() -> None:
    command = f"{' '.join(COMMAND)} --list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


# **** an interrupt ****


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    command = [*COMMAND, "-b", f"{HOSTILE}hangs", "--case", "Add[f32,*]", "--jobs", "2", "--timeout", "600"]
    environment = {**os.environ, "HOSTILE_PIDS": str(pids)}
    # What runs in the background of a shell ignores SIGINT, and so would what it starts.
    listens: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    output = subprocess.PIPE
    with subprocess.Popen(command, stdout=output, stderr=output, text=True, env=environment, **listens) as process:
        try:
            while process.poll() is None and (not pids.exists() or len(set(pids.read_text().split())) < 2):
                time.sleep(0.05)
            process.send_signal(number)
            told = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert process.returncode == (-9 if number is signal.SIGKILL else 1)
    assert "Traceback" not in told
    assert number is signal.SIGKILL or "error: interrupted" in told
    until = time.monotonic() + 10
    while (left := [pid for pid in pids.read_text().split() if is_running(pid)]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def is_running(pid: str) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


# **** damaged reports ****

GOOD = {"case": "a", "level": 0, "suite": "probe", "status": "passed"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a conformance report"),
        ("[]", "is not a conformance report of schema version 1"),
        ({"schema_version": 2, "records": []}, "(it says 2)"),
        ({"records": []}, "(it says None)"),
        ({"schema_version": 1}, "is not a conformance report"),
        ({"schema_version": 1, "records": [GOOD, 5]}, "record 2"),
        ({"schema_version": 1, "records": [{"case": "a"}]}, "record 1"),
        ({"schema_version": 1, "records": [{**GOOD, "status": "fine"}]}, "'fine' is not a valid Status"),
        ({"schema_version": 1, "records": [{**GOOD, "level": "0"}]}, "level is '0'"),
        ({"schema_version": 1, "records": [{**GOOD, "reason": 5}]}, "reason is 5"),
        ({"schema_version": 1, "records": [{**GOOD, "measured": 5}]}, "record 1"),
        ({"schema_version": 1, "records": [{**GOOD, "measured": {"max_abs": "much"}}]}, "max_abs is 'much'"),
        ({"schema_version": 1, "records": [{**GOOD, "tolerance": {"rtol": 0, "atol": 0, "default": [0]}}]}, "record 1"),
        ({"schema_version": 1, "header": [], "records": []}, "header must be an object"),
        ({"schema_version": 1, "seconds": "long", "records": []}, "seconds a number"),
    ],
)
def test_reports_that_are_none(tmp_path: Path, content: Any, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    assert _main(["report", str(file), "-o", str(tmp_path / "r.html")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
