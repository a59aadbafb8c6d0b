"""Progress of long work: one line that says what is being done and how much is left, and that goes away at the end.

The line is shown on a terminal's standard error, or below the cell of a notebook; elsewhere there is none. It appears
after a second without output, and is removed before anything else is printed. Its text is that of the latest
:func:`set_progress`, and the steps of work that the core and backends report, see :func:`lite_core.log.tracked`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple, Protocol

__all__ = ["set_progress", "shown_progress", "undisturbed"]

logger = logging.getLogger("lite.progress")

#: Seconds without output after which the line appears, and between two changes of its text.
_DELAY, _PERIOD = 1.0, 0.25
#: A remaining time is estimated from this many steps and seconds on.
_LEAST_STEPS, _LEAST_SECONDS = 2, 2.0
#: The text and the pieces of work that the line names at most: those that began last.
_MOST_NAMED = 2

_active: _Display | None = None


@contextmanager
def shown_progress() -> Iterator[Callable[[str], None]]:
    """Show what is being done until the end of the context, on a terminal or in a notebook.

    Yields:
        the function :func:`set_progress`, which sets the text of the line. In a nested context, the line stays that
        of the outer one, whose text returns at the end.
    """
    global _active
    outer = _active
    line = _find_line() if outer is None else None
    if outer is not None:
        before = outer.text
        try:
            yield set_progress
        finally:
            outer.set_text(before)
    elif line is None:
        yield set_progress
    else:
        _active = _Display(line)
        level = logger.level
        logger.addHandler(_active)
        logger.setLevel(logging.DEBUG)
        try:
            with _active.running():
                yield set_progress
        finally:
            logger.setLevel(level)
            logger.removeHandler(_active)
            _active = None


def set_progress(text: str) -> None:
    """Set the text of the line, such as "reading the model"; do nothing if no line is shown."""
    if _active is not None:
        _active.set_text(text)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let only :func:`set_progress` change the line, so that no thread disturbs a measurement of time."""
    display = _active
    if display is None:
        yield
        return
    with display.held():
        yield


class _Line(Protocol):
    """A line of text that can be removed."""

    def width(self) -> int: ...

    def show(self, text: str) -> None: ...

    def clear(self) -> None: ...


class _Work(NamedTuple):
    """Work that is reported, and when it began."""

    report: Any
    begin: float


class _Display(logging.Handler):
    """The state of the line, which a thread draws, and a handler for the reports of work."""

    def __init__(self, line: _Line) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""
        self._line = line
        self._works: list[_Work] = []
        self._state = threading.Condition(threading.RLock())
        self._process = os.getpid()  # the child of a fork has neither the thread nor the line
        self._begin = self._quiet_since = time.monotonic()
        self._shown = ""
        self._drawn = 0.0
        self._is_held = self._is_over = False
        #: False while another text, such as a question to the user, is unfinished on the terminal's last line.
        self._is_at_line_start = True

    # **** what is being done ****

    def emit(self, record: logging.LogRecord) -> None:
        """Take a report of :func:`lite_core.log.tracked`."""
        report = getattr(record, "work", None)
        if report is None or self._process != os.getpid():
            return
        with self._state:
            known = any(work.report is report for work in self._works)
            if report.is_over:
                self._works = [work for work in self._works if work.report is not report]
            elif not known:
                self._works.append(_Work(report, time.monotonic()))

    def set_text(self, text: str) -> None:
        """Set the text of the line."""
        if self._process != os.getpid():
            return
        with self._state:
            if text.partition(":")[0] != self.text.partition(":")[0]:
                self._begin = time.monotonic()
            self.text = text
            if self._is_held and time.monotonic() - self._drawn > _PERIOD:
                self._draw()

    def _line_text(self, now: float) -> str:
        """Return the line: ``compiling for opencl: building programs, 3 of 29, 4 s, about 30 s left``.

        Names are left out from the beginning if the line is too long: the numbers at its end matter most.
        """
        works = [work for work in self._works if work.report.total > 1] or self._works[-1:]
        names = [self.text] if self.text else []
        for report, _ in works:
            names.append(f"{report.what}, {report.done} of {report.total}" if report.total > 1 else report.what)
        seconds = now - (works[-1].begin if works else self._begin)
        parts = [_duration(seconds)] if seconds >= 1 else []
        if works and works[-1].report.done >= _LEAST_STEPS and seconds >= _LEAST_SECONDS:
            done, total = works[-1].report.done, works[-1].report.total
            parts.append(f"about {_duration(seconds / done * (total - done))} left")
        names = names[-_MOST_NAMED:] or ["working"]
        while True:
            text = ", ".join([": ".join(names), *parts])
            if len(text) < self._line.width() or len(names) == 1:
                return text
            del names[0]

    # **** drawing ****

    @contextmanager
    def running(self) -> Iterator[None]:
        """Draw the line in a thread, and remove it before other output, until the end of the context."""
        thread = threading.Thread(target=self._redraw, name="lite-progress", daemon=True)
        # Also a pipe: what reads it, such as `head`, may print on the same terminal at once.
        streams = {name: _Stream(stream, self) for name in ("stdout", "stderr") if (stream := getattr(sys, name))}
        for name, stream in streams.items():
            setattr(sys, name, stream)
        thread.start()
        try:
            yield
        finally:
            if self._process == os.getpid():
                with self._state:
                    self._is_over = True
                    self._state.notify()
                thread.join()
                self.clear()
            for name, stream in streams.items():
                if getattr(sys, name) is stream:
                    setattr(sys, name, stream.stream)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stop the thread, and reports of work, until the end of the context."""
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        self._is_held = True
        try:
            yield
        finally:
            logger.setLevel(level)
            with self._state:
                self._is_held = False
                self._state.notify()

    def clear(self) -> None:
        """Remove the line, and show none for the next second."""
        if self._process != os.getpid():
            return
        with self._state:
            self._quiet_since = time.monotonic()
            if self._shown:
                self._line.clear()
                self._shown = ""

    def wrote(self, text: str) -> None:
        """Note the text that the program has written to the terminal."""
        if text:
            self._is_at_line_start = text.endswith("\n")

    def _redraw(self) -> None:
        with self._state:
            while not self._is_over:
                self._state.wait(None if self._is_held else _PERIOD)
                if not self._is_held and not self._is_over:
                    self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        if self._is_at_line_start and now - self._quiet_since >= _DELAY:
            text = self._line_text(now)
            self._drawn = now
            if text != self._shown:
                self._line.show(text)
                self._shown = text


class _Stream:
    """Standard output or standard error, where the line is removed before anything is written."""

    def __init__(self, stream: Any, display: _Display) -> None:
        self.stream, self._display = stream, display

    def write(self, text: str) -> int:
        self._display.clear()
        written: int = self.stream.write(text)
        self._display.wrote(text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.stream)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "fileno"):  # for writing without this object, as input() writes a question
            self._display.clear()
            self._display.wrote("?")
        return getattr(self.stream, name)


def _is_terminal(name: str) -> bool:
    stream = getattr(sys, name)
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # None, or closed
        return False


def _find_line() -> _Line | None:
    """Return the line of a notebook or of a terminal; None if there is neither, or if the terminal shows the log."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:
        return _NotebookLine()
    if not _is_terminal("stderr") or _is_dumb() or logging.getLogger("lite").handlers:
        return None
    return _TerminalLine(sys.stderr)


def _is_dumb() -> bool:
    """Return True for a terminal that cannot remove a line."""
    if sys.platform == "win32":
        from rich.console import detect_legacy_windows

        return bool(detect_legacy_windows())
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


class _TerminalLine:
    """A line on a terminal, cut to its width."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def width(self) -> int:
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except OSError:  # it has been closed
            columns = 0
        return columns or 80  # some terminals do not tell

    def show(self, text: str) -> None:
        from rich.cells import set_cell_size  # not at the top: most commands end before it is needed

        # The cursor stays behind the text, and visible: a crash of native code would leave it as it is.
        self._write("\r\x1b[2K" + set_cell_size(text, self.width() - 1).rstrip())

    def clear(self) -> None:
        self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal has gone, or the stream is closed
            self._stream.write(text)
            self._stream.flush()


class _NotebookLine:
    """A line below the cell of a notebook that is running."""

    def __init__(self) -> None:
        self._handle: Any = None

    def width(self) -> int:
        return 100

    def show(self, text: str) -> None:
        if self._handle is None:
            ipython: Any = import_module("IPython.display")  # its functions have no types
            self._handle = ipython.display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
