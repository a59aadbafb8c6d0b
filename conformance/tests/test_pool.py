"""Worker processes: whatever a backend does to its own, the record is clear and nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.pool import Pool, Worker, WorkerDiedError
from lite_core.errors import BackendUnavailableError, InputError

FILE = Path(__file__).with_name("hostile_backends.py")
ADD = "Add[f32,2x3x4x5,3x1x1,channel]"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks")


def settings(name: str) -> Settings:
    return Settings(f"{FILE}:{name}", examples=2)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {case.name: case for case in all_cases(Settings("host"))}


def run(cases: dict[str, Case], backend: str, *names: str, timeout: float = 30.0) -> list[Record]:
    records: list[Record] = []
    Pool(settings(backend), 1, timeout).run([cases[n] for n in names], None, lambda _, record: records.append(record))
    return records


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for_end(pids: list[int]) -> list[int]:
    """Those that are still there after some seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until and any(map(is_alive, pids)):
        time.sleep(0.05)
    return [pid for pid in pids if is_alive(pid)]


@pytest.mark.parametrize("backend", ["prints", "closes_stdout", "reads_input", "changes_everything", "endless_threads"])
def test_a_disturbed_process_still_answers(cases: dict[str, Case], backend: str) -> None:
    first, second = run(cases, backend, ADD, "Add[f32,drawn]")
    assert (first.case, first.status, first.reason) == (ADD, Status.PASSED, "")
    assert (second.case, second.status, second.reason) == ("Add[f32,drawn]", Status.PASSED, "")


def test_a_crash_has_its_cause_example_and_place(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "noisy_crash", "Relu[f32,drawn]")
    assert record.status is Status.CRASHED
    assert record.reason.startswith("the process was ended by SIGSEGV at Relu(float32[")
    assert "in disturb" in record.details
    assert record.examples == 1
    assert record.device == "hostile: hostile"


def test_a_killed_process_names_the_signal(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "dies_in_compile", ADD)
    assert (record.status, record.reason) == (Status.CRASHED, "the process was ended by SIGKILL")


def test_a_hang_says_where_it_hung(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "hangs", ADD, timeout=1.0)
    assert (record.status, record.reason) == (Status.HUNG, "not done after 1 s")
    assert "in disturb" in record.details


def test_a_hang_that_cannot_be_asked_is_ended_too(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "ignores_abort", ADD, timeout=0.5)
    assert (record.status, record.reason) == (Status.HUNG, "not done after 0.5 s")


def test_leaving_is_no_success(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "exits_in_run", ADD)
    assert record.status is Status.FAILED
    assert "run() raised SystemExit: 0" in record.reason
    (record,) = run(cases, "exits_in_supports", ADD)
    assert record.status is Status.FAILED
    assert "supports() of " in record.reason


@pytest.mark.parametrize(("backend", "status"), [("forks", Status.CRASHED), ("starts_a_process", Status.PASSED)])
def test_what_a_backend_starts_ends_with_it(
    cases: dict[str, Case], backend: str, status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_PIDS", str(tmp_path / "pids"))
    start = time.monotonic()
    (record,) = run(cases, backend, ADD)
    assert record.status is status
    assert time.monotonic() - start < 20  # and not the time limit of the case
    assert record.reason == ("the process ended with exit code 9" if status is Status.CRASHED else "")
    assert not wait_for_end([int(line) for line in (tmp_path / "pids").read_text().split()])


def test_a_new_process_takes_over_after_a_crash(cases: dict[str, Case]) -> None:
    records = run(cases, "dies_in_compile", ADD, "probe[devices]", "probe[repeatable]")
    assert [r.status for r in records] == [Status.CRASHED, Status.PASSED, Status.PASSED]


def test_an_error_in_this_process_ends_the_others(
    cases: dict[str, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_PIDS", str(tmp_path / "pids"))

    def interrupted(case: Case, record: Record) -> None:
        while not (tmp_path / "pids").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Pool(settings("hangs"), 2, 600.0).run([cases["probe[devices]"], cases[ADD], cases[ADD]], None, interrupted)
    assert time.monotonic() - start < 60
    assert not wait_for_end([int(line) for line in (tmp_path / "pids").read_text().split()])


def test_a_worker_ends_when_nobody_listens(cases: dict[str, Case]) -> None:
    worker = Worker(settings("hangs"))
    process = worker._process
    assert process.stdin is not None
    process.stdin.write(f'{{"run": "{ADD}"}}\n')
    process.stdin.close()
    assert process.wait(30) == 0
    worker.close()
    worker.close()


def test_what_is_wrong_when_the_backend_is_opened(tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match="probe\\(\\) raised SystemExit: no driver") as death:
        Worker(settings("probe_raises"))
    assert death.value.status is Status.FAILED
    with pytest.raises(BackendUnavailableError, match="backend 'nobody' is not installed"):
        Worker(Settings("nobody"))
    dies = tmp_path / "dies.py"
    dies.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGBUS)\n")
    with pytest.raises(WorkerDiedError, match="the process was ended by SIGBUS") as death:
        Worker(Settings(f"{dies}:backend"))
    assert (death.value.status, signal.SIGBUS.name in str(death.value)) == (Status.CRASHED, True)
    raises = tmp_path / "json.py"  # the name of a module that is needed
    raises.write_text("number = 1\nraise ValueError('no luck')\n")
    with pytest.raises(InputError, match=r"json.py' cannot be used: ValueError: no luck \(.*json.py, line 2\)"):
        Worker(Settings(f"{raises}:backend"))


# **** answers and memories that the contract does not know ****


@pytest.mark.parametrize(
    ("backend", "case", "reason"),
    [
        ("probe_generates", "probe[devices]", "must give a list of devices or Unavailable, gave generator"),
        ("strange_device", "probe[devices]", "has no name that a person would call it, but 7"),
        ("scratch_negative", ADD, "scratch_bytes must be a number of bytes from 0 to 4294967296, is -1"),
        ("scratch_text", ADD, "is '5'"),
        ("scratch_huge", ADD, "is 1000000000000000"),
        ("memory_read_only", "contract[memory]", "cannot be written; the caller owns it"),
        ("memory_lists", ADD, "Memory.download() must give a NumPy array, gave list"),
        ("memory_full", ADD, "Memory.allocate() raised MemoryError: the device is full"),
    ],
)
def test_what_is_against_the_contract_is_the_backends_failure(
    cases: dict[str, Case], backend: str, case: str, reason: str
) -> None:
    (record,) = run(cases, backend, case)
    assert record.status is Status.FAILED, record.reason
    assert reason in record.reason


def test_a_copy_need_not_be_contiguous(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "memory_strided", ADD)
    assert (record.status, record.reason) == (Status.PASSED, "")


@pytest.mark.parametrize(("backend", "reason"), [("memory_raises", "no context"), ("memory_none", "lacks space")])
def test_without_a_memory_nothing_begins(backend: str, reason: str) -> None:
    with pytest.raises(WorkerDiedError, match=reason) as death:
        Worker(settings(backend))
    assert death.value.status is Status.FAILED


def test_strange_words_come_through(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "strange_words", ADD)
    assert record.status is Status.UNSUPPORTED
    assert "second line" in record.reason
