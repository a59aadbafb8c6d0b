"""Worker processes: clear records of crashes and hangs, and no remaining processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import ProcessLog, wait_for_end

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


@pytest.fixture
def process_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessLog]:
    """The numbers of processes that hostile backends start."""
    log = ProcessLog(tmp_path)
    monkeypatch.setenv("HOSTILE_PIDS", str(log.path))
    yield log
    log.close()


@pytest.mark.parametrize("backend", ["prints", "closes_stdout", "reads_input", "changes_everything", "endless_threads"])
def test_disturbed_process_still_answers(cases: dict[str, Case], backend: str) -> None:
    first, second = run(cases, backend, ADD, "Add[f32,drawn]")
    assert (first.case, first.status, first.reason) == (ADD, Status.PASSED, "")
    assert (second.case, second.status, second.reason) == ("Add[f32,drawn]", Status.PASSED, "")


def test_crash_record_has_signal_example_and_stack(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "noisy_crash", "Relu[f32,drawn]")
    assert record.status is Status.CRASHED
    assert "SIGSEGV at Relu(float32[" in record.reason
    assert "in disturb" in record.details
    assert record.examples == 1
    assert record.device == "hostile: hostile"


def test_killed_process_is_reported_with_its_signal(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "dies_in_compile", ADD)
    assert record.status is Status.CRASHED
    assert "SIGKILL" in record.reason


def test_hang_record_has_the_stack(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "hangs", ADD, timeout=1.0)
    assert record.status is Status.HUNG
    assert "1 s" in record.reason
    assert "in disturb" in record.details


@pytest.mark.full("conformance")
def test_time_limit_is_that_of_each_example(cases: dict[str, Case]) -> None:
    records: list[Record] = []
    slow = Settings(f"{FILE}:takes_a_second", examples=4)
    Pool(slow, 1, 4.0).run([cases["Add[f32,drawn]"]], None, lambda _, record: records.append(record))
    assert [(r.status, r.reason, r.examples) for r in records] == [(Status.PASSED, "", 4)]


@pytest.mark.full("conformance")
def test_hang_of_an_example_names_it(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "hangs", "Relu[f32,drawn]", timeout=0.5)
    assert record.status is Status.HUNG
    assert "0.5 s at Relu(float32[" in record.reason


def test_hanging_process_that_ignores_sigabrt_is_killed(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "ignores_abort", ADD, timeout=0.5)
    assert record.status is Status.HUNG
    assert "0.5 s" in record.reason


def test_system_exit_is_a_failure(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "exits_in_run", ADD)
    assert record.status is Status.FAILED
    assert "SystemExit: 0" in record.reason
    (record,) = run(cases, "exits_in_supports", ADD)
    assert record.status is Status.FAILED
    assert "supports() of " in record.reason


@pytest.mark.parametrize(("backend", "status"), [("forks", Status.CRASHED), ("starts_a_process", Status.PASSED)])
def test_processes_started_by_a_backend_are_ended(
    cases: dict[str, Case], backend: str, status: Status, process_log: ProcessLog
) -> None:
    (record,) = run(cases, backend, ADD)
    assert record.status is status  # not HUNG: the streams that the child keeps open are not waited for
    assert record.reason == ("the process ended with exit code 9" if status is Status.CRASHED else "")
    assert not wait_for_end(process_log.wait_for(1))


def test_crashed_worker_is_replaced(cases: dict[str, Case]) -> None:
    records = run(cases, "dies_in_compile", ADD, "probe[devices]", "probe[repeatable]")
    assert [r.status for r in records] == [Status.CRASHED, Status.PASSED, Status.PASSED]


def test_exception_in_this_process_ends_the_workers(cases: dict[str, Case], process_log: ProcessLog) -> None:
    def interrupted(case: Case, record: Record) -> None:
        process_log.wait_for(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pool(settings("hangs"), 2, 600.0).run([cases["probe[devices]"], cases[ADD], cases[ADD]], None, interrupted)
    assert not wait_for_end(process_log.numbers())


def test_worker_exits_when_its_input_is_closed(cases: dict[str, Case]) -> None:
    worker = Worker(settings("hangs"))
    process = worker._process
    assert process.stdin is not None
    process.stdin.write(f'{{"run": "{ADD}"}}\n')
    process.stdin.close()
    assert process.wait(30) == 0
    worker.close()
    worker.close()


def test_errors_of_opening_the_backend(tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match="SystemExit: no driver") as death:
        Worker(settings("probe_raises"))
    assert death.value.status is Status.FAILED
    with pytest.raises(BackendUnavailableError, match="'no_such_backend'"):
        Worker(Settings("no_such_backend"))
    dies = tmp_path / "dies.py"
    dies.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGBUS)\n")
    with pytest.raises(WorkerDiedError, match="SIGBUS") as death:
        Worker(Settings(f"{dies}:backend"))
    assert (death.value.status, signal.SIGBUS.name in str(death.value)) == (Status.CRASHED, True)
    raises = tmp_path / "json.py"  # the name of a module of the standard library
    raises.write_text("number = 1\nraise ValueError('no luck')\n")
    with pytest.raises(InputError, match=r"ValueError: no luck \(.*json.py, line 2\)"):
        Worker(Settings(f"{raises}:backend"))


# **** violations of the contract ****


@pytest.mark.parametrize(
    ("backend", "case", "reason"),
    [
        ("probe_generates", "probe[devices]", "generator"),
        ("strange_device", "probe[devices]", "7"),
        ("scratch_negative", ADD, "-1"),
        ("scratch_text", ADD, "'5'"),
        ("scratch_huge", ADD, "1000000000000000"),
        ("memory_read_only", "contract[memory]", "read-only"),
        ("memory_lists", ADD, "list"),
        ("memory_full", ADD, "MemoryError: the device is full"),
    ],
)
def test_contract_violation_is_a_failure_of_the_backend(
    cases: dict[str, Case], backend: str, case: str, reason: str
) -> None:
    (record,) = run(cases, backend, case)
    assert record.status is Status.FAILED, record.reason
    assert reason in record.reason


def test_download_may_be_strided(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "memory_strided", ADD)
    assert (record.status, record.reason) == (Status.PASSED, "")


@pytest.mark.parametrize(("backend", "reason"), [("memory_raises", "no context"), ("memory_none", "lacks space")])
def test_backend_without_a_memory_cannot_be_opened(backend: str, reason: str) -> None:
    with pytest.raises(WorkerDiedError, match=reason) as death:
        Worker(settings(backend))
    assert death.value.status is Status.FAILED


def test_reason_with_control_characters_is_transmitted(cases: dict[str, Case]) -> None:
    (record,) = run(cases, "strange_words", ADD)
    assert record.status is Status.UNSUPPORTED
    assert "second line" in record.reason
