"""The line about progress: in a terminal, in a pipe, beside other output; and the reports that it shows."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pseudo_terminals import Terminal, screen

from lite_core.log import tracked
from lite_tools.commands import progress
from lite_tools.commands.progress import set_progress, shown_progress, undisturbed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")

WORK = """
import sys, time
from lite_core.log import tracked
from lite_tools.commands import print_notes, set_progress, shown_progress

with shown_progress() as line:
    print("before")
    line("reading")
    for number in tracked(range(4), "counting"):
        time.sleep(0.6)
        if number == 2:
            print("a result")
            print_notes(["a note"])
    print("after")
"""


class Recorder(logging.Handler):
    """A handler that keeps the state of the work in each record."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[tuple[str, int, int, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        work: Any = record.work  # type: ignore[attr-defined]
        self.states.append((work.what, work.done, work.total, work.is_over))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    logger, handler = logging.getLogger("lite.progress"), Recorder()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


def test_steps_and_the_end_of_work_are_reported(recorder: Recorder) -> None:
    assert list(tracked("ab", "spelling")) == ["a", "b"]
    assert recorder.states == [
        ("spelling", 0, 2, False),
        ("spelling", 1, 2, False),
        ("spelling", 1, 2, True),
    ]


def test_work_that_fails_is_over(recorder: Recorder) -> None:
    def work() -> None:
        for number in tracked(range(3), "dividing"):
            1 / number

    with pytest.raises(ZeroDivisionError):
        work()
    assert recorder.states == [("dividing", 0, 3, False), ("dividing", 0, 3, True)]


def test_nothing_is_reported_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as line:
        line("reading")
        assert list(tracked([1], "counting")) == [1]
        assert not logging.getLogger("lite.progress").isEnabledFor(logging.DEBUG)
    assert capfd.readouterr() == ("", "")


def test_line_in_a_terminal_is_gone_before_other_output_and_in_the_end() -> None:
    terminal = Terminal([sys.executable, "-c", WORK])
    assert terminal.wait() == 0, terminal.output
    assert "reading: counting, 2 of 4" in terminal.output
    assert [line for line in screen(terminal.output) if line] == ["before", "a result", "note: a note", "after"]


def test_line_in_a_terminal_is_gone_before_output_of_the_reader_of_a_pipe() -> None:
    printed = WORK.replace('print("a result")', 'print("a result", flush=True); time.sleep(0.2)')
    terminal = Terminal(["sh", "-c", '"$0" -c "$1" | cat', sys.executable, printed])
    assert terminal.wait() == 0, terminal.output
    assert "reading: counting, 2 of 4" in terminal.output
    assert [line for line in screen(terminal.output) if line] == ["before", "a result", "note: a note", "after"]


def test_pipe_gets_no_line() -> None:
    result = subprocess.run([sys.executable, "-c", WORK.replace("0.6", "0.3")], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("before\na result\nafter\n", "note: a note\n")


def test_question_is_not_overwritten() -> None:
    ask = (
        "import click, time; from lite_tools.commands import shown_progress\nwith shown_progress(): click.confirm('?')"
    )
    terminal = Terminal([sys.executable, "-c", ask])
    terminal.wait_for("[y/N]")
    time.sleep(1.6)  # longer than the line waits
    terminal.type("y\n")
    assert terminal.wait() == 0, terminal.output
    assert [line for line in screen(terminal.output) if line] == ["? [y/N]: y"]


# **** the text ****


class Line:
    """A line that keeps its texts."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.texts: list[str] = []

    def width(self) -> int:
        return self._width

    def show(self, text: str) -> None:
        self.texts.append(text)

    def clear(self) -> None:
        self.texts.append("")


def texts(monkeypatch: pytest.MonkeyPatch, width: int = 80) -> Line:
    line = Line(width)
    monkeypatch.setattr(progress, "_find_line", lambda: line)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(progress, "_PERIOD", 0.01)
    return line


def wait_for(line: Line, text: str) -> None:
    """Wait until the line has a text, which a thread gives it."""
    end = time.monotonic() + 30
    while line.texts[-1:] != [text]:
        assert time.monotonic() < end, line.texts
        time.sleep(0.01)


def test_line_names_the_latest_work(monkeypatch: pytest.MonkeyPatch) -> None:
    line = texts(monkeypatch)
    with shown_progress() as say:
        wait_for(line, "working")
        say("loading a.onnx")
        wait_for(line, "loading a.onnx")
        for _ in tracked([0], "compiling partitions"):
            wait_for(line, "loading a.onnx: compiling partitions")
            for number in tracked(range(2), "compiling kernels"):
                wait_for(line, f"loading a.onnx: compiling kernels, {number} of 2")
            wait_for(line, "loading a.onnx: compiling partitions")
        with shown_progress() as inner:
            inner("verifying")
            wait_for(line, "verifying")
        wait_for(line, "loading a.onnx")
    assert line.texts[-1] == ""


def test_long_line_loses_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    line = texts(monkeypatch, width=40)
    with shown_progress() as say:
        say("loading a_model_with_a_long_name.onnx")
        for number in tracked(range(2), "compiling kernels"):
            wait_for(line, f"compiling kernels, {number} of 2")


def test_time_left_is_estimated_from_the_steps_done(monkeypatch: pytest.MonkeyPatch) -> None:
    line, clock = texts(monkeypatch), [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with shown_progress() as say:
        say("a.onnx")
        for number in tracked(range(10), "compiling kernels"):
            clock[0] = 100 + 30 * number
            if number == 4:
                wait_for(line, "a.onnx: compiling kernels, 4 of 10, 2 min 0 s, about 3 min 0 s left")


def test_thread_draws_nothing_during_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    line = texts(monkeypatch)
    with shown_progress():
        wait_for(line, "working")
        with undisturbed():
            for _ in tracked(range(3), "counting"):
                time.sleep(0.03)
            assert line.texts == ["working"]
            set_progress("measuring")
            assert line.texts == ["working", "measuring"]
