"""Runs that stop early: what they report, and how later runs go on, in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_conformance import Record, Report, Selection, Status, run_suite
from lite_conformance.cases.case import Settings
from lite_conformance.run.identity import code_digest, differences
from lite_conformance.run.journal import Journal
from lite_conformance.run.last_failed import last_failed, note_failures
from lite_core.errors import InputError

HERE = Path(__file__).parent
HOST = Settings("host", examples=2)
RELU = Selection(cases=["Relu[f32,*]"], exclude=["*large*"])


def stop_after(count: int, seen: list[str]) -> object:
    def progress(record: Record, total: int) -> None:
        seen.append(record.case)
        if len(seen) == count:
            raise KeyboardInterrupt

    return progress


def interrupted(journal: Journal, count: int = 3, settings: Settings = HOST, selection: Selection = RELU) -> list[str]:
    """Run until ``count`` cases have ended, and return their names."""
    seen: list[str] = []
    report = run_suite(settings, selection, isolate=False, journal=journal, progress=stop_after(count, seen))  # type: ignore[arg-type]
    total = len(selection.choose(settings))
    assert report.incomplete == f"interrupted, {count} of {total} cases ran"
    assert [record.case for record in report.records] == seen
    journal.close(is_complete=False)
    return seen


def test_interrupted_run_is_resumed(tmp_path: Path) -> None:
    before = interrupted(Journal.beside(tmp_path / "r.json"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.json.journal"]
    journal = Journal.beside(tmp_path / "r.json", resume=True)
    now: list[str] = []
    report = run_suite(HOST, RELU, isolate=False, journal=journal, progress=lambda r, total: now.append(r.case))
    journal.close(is_complete=not report.incomplete)
    every = [case.name for case in RELU.choose(HOST)]
    assert (before + now, report.incomplete) == (every, "")
    assert [(r.case, r.status) for r in report.records] == [(name, Status.PASSED) for name in every]
    assert report.header["resumed"] == f"3 of {len(every)} cases ran before"
    assert list(tmp_path.iterdir()) == []


def test_line_that_was_not_written_to_its_end_is_run_again(tmp_path: Path) -> None:
    before = interrupted(Journal.beside(tmp_path / "r.json"))
    file = tmp_path / "r.json.journal"
    file.write_bytes(file.read_bytes()[:-7])  # as a kill during the last write leaves it
    journal = Journal.beside(tmp_path / "r.json", resume=True)
    now: list[str] = []
    interrupt = stop_after(2, now)
    report = run_suite(HOST, RELU, isolate=False, journal=journal, progress=interrupt)  # type: ignore[arg-type]
    journal.close(is_complete=False)
    assert now[0] == before[-1]
    assert [r.case for r in report.records] == [*before, now[1]]
    assert all(line.endswith(b"}\n") for line in file.read_bytes().splitlines(keepends=True))


@pytest.mark.parametrize(
    ("settings", "selection", "difference"),
    [
        (Settings("host", seed=7, examples=2), RELU, r"seed \(0 before, 7 now\)"),
        (Settings("host", examples=3), RELU, r"examples \(2 before, 3 now\)"),
        (HOST, Selection(cases=["Add[f32,2x3*"]), r"selection: cases \(Relu\[f32,\*\] before, Add\[f32,2x3\* now\)"),
        (Settings(f"{HERE / 'wrong_backends.py'}:backend_right", examples=2), RELU, r"backend \(host before"),
    ],
)
def test_another_run_is_not_resumed(tmp_path: Path, settings: Settings, selection: Selection, difference: str) -> None:
    interrupted(Journal.beside(tmp_path / "r.json"))
    content = (tmp_path / "r.json.journal").read_bytes()
    with pytest.raises(InputError, match=f"cannot resume: .*{difference}"):
        run_suite(settings, selection, isolate=False, journal=Journal.beside(tmp_path / "r.json", resume=True))
    assert (tmp_path / "r.json.journal").read_bytes() == content


def test_changed_backend_is_not_resumed(tmp_path: Path) -> None:
    """A version does not tell an edited backend from the one that ran before."""
    file = tmp_path / "edited.py"
    text = (HERE / "hostile_backends.py").read_text()
    file.write_text(text)
    settings = Settings(f"{file}:Hostile", examples=2)
    interrupted(Journal.beside(tmp_path / "r.json"), 1, settings)
    file.write_text(f"{text}\nNEW = 1\n")
    journal = Journal.beside(tmp_path / "r.json", resume=True)
    with pytest.raises(InputError, match="the backend's code"):
        run_suite(settings, RELU, isolate=False, journal=journal)


def test_differences_name_what_differs() -> None:
    before = {"seed": 0, "versions": {"numpy": "2.0", "toy": "1"}, "stack": {}, "platform": "Linux"}
    now = {"seed": 0, "versions": {"numpy": "2.1", "toy": "1"}, "stack": {"driver": "5"}, "platform": "Linux"}
    assert differences(before, now) == [
        "versions: numpy (2.0 before, 2.1 now)",
        "stack: driver (nothing before, 5 now)",
    ]
    assert differences(before, dict(before)) == []


def test_digest_of_code_depends_on_content(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    first = code_digest(tmp_path)
    (tmp_path / "notes.txt").write_text("no code")
    assert code_digest(tmp_path) == first
    (tmp_path / "a.py").write_text("b")
    assert code_digest(tmp_path) != first
    assert code_digest(tmp_path / "missing") == code_digest(tmp_path / "another")


@pytest.mark.skipif("sys.platform == 'win32'", reason="no locks")
def test_two_runs_do_not_share_a_journal(tmp_path: Path) -> None:
    first = Journal.beside(tmp_path / "r.json")
    first.begin({})
    with pytest.raises(InputError, match="another run writes to"):
        Journal.beside(tmp_path / "r.json").begin({})
    first.close(is_complete=True)


def test_journals_in_the_cache_are_separate_for_each_selection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    one, other = Journal.in_cache("toy", "cases a"), Journal.in_cache("toy", "cases b")
    assert one is not None
    assert other is not None
    assert one.file != other.file
    assert one.begin({"seed": 0}) == []
    beside = Journal.in_cache("toy", "cases a")  # the same command at the same time runs without a journal
    assert beside is not None
    assert beside.begin({"seed": 0}) == []
    beside.close(is_complete=True)
    assert one.file.exists()
    one.close(is_complete=False)
    again = Journal.in_cache("toy", "cases a", resume=True)
    assert again is not None
    assert again.file == one.file
    asked = Journal.in_cache("toy", "cases b", resume=True)
    assert asked is not None
    with pytest.raises(InputError, match=r"seed \(0 before, 7 now\)"):
        asked.begin({"seed": 7})
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    assert Journal.in_cache("toy", "cases a") is None


def test_limit_of_bad_cases_stops_the_run() -> None:
    settings = Settings(f"{HERE / 'wrong_backends.py'}:backend_half_precision", examples=2)
    report = run_suite(settings, Selection(cases=["Add[f32,*]"], exclude=["*large*"]), isolate=False, maxfail=2)
    assert report.counts()["failed"] == 2
    assert report.records[-1].status is Status.FAILED
    assert report.incomplete.startswith(f"stopped after 2 bad case(s), {len(report.records)} of ")
    assert not report.is_interrupted


def test_last_failed_are_kept_until_they_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    with pytest.raises(InputError, match="no earlier run of 'toy' is known here"):
        last_failed("toy", None)
    report = Report({"backend": "toy"}, [record("a", Status.FAILED), record("b", Status.CRASHED), record("c")])
    report.write(tmp_path / "r.json")
    assert last_failed("toy", str(tmp_path / "r.json")) == {"a", "b"}
    note_failures("toy", report)
    note_failures("toy", Report({}, [record("a"), record("d", Status.XPASS)]))
    assert last_failed("toy", None) == {"b", "d"}
    note_failures("toy", Report({}, [record("b"), record("d")]))
    assert last_failed("toy", None) == frozenset()


def record(case: str, status: Status = Status.PASSED) -> Record:
    return Record(case, 2, "ops", status=status)
