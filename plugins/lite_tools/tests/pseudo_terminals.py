"""Programs that run in a pseudo-terminal, and what is on its screen in the end."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Mapping, Sequence

__all__ = ["Terminal", "screen"]

_SEQUENCE = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|\r|\n|\x07|[^\x1b\r\n\x07]+")


class Terminal:
    """A program in a pseudo-terminal of 80 columns.

    Args:
        command: the program and its arguments.
        environment: variables, besides those of this process.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        import pty  # not on Windows

        self.output = ""
        self._process, self._file = pty.fork()
        if self._process == 0:
            os.environ.update({"TERM": "xterm", "COLUMNS": "80", "LINES": "40", **(environment or {})})
            os.execvp(command[0], list(command))

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._file, text.encode())

    def wait_for(self, *texts: str, seconds: float = 60) -> str:
        """Read the output until one of the texts is in it after earlier waits, and return what was read.

        Raises:
            TimeoutError: none of them came.
        """
        found, end = "", time.monotonic() + seconds
        while not any(text in found for text in texts):
            if time.monotonic() > end:
                raise TimeoutError(f"none of {texts} in {found!r}")
            found += (piece := self._read())
            if not piece and not self._is_open():
                raise TimeoutError(f"the program has ended; none of {texts} in {found!r}")
        return found

    def wait(self) -> int:
        """Read until the program ends, and return its exit code."""
        while self._is_open():
            self._read()
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])

    def kill(self) -> None:
        """End the program."""
        os.kill(self._process, 9)
        os.waitpid(self._process, 0)
        os.close(self._file)

    def _read(self) -> str:
        ready, _, _ = select.select([self._file], [], [], 0.1)
        try:
            piece = os.read(self._file, 4096).decode(errors="replace") if ready else ""
        except OSError:  # the program has ended
            self._file, piece = -1, ""
        self.output += piece
        return piece

    def _is_open(self) -> bool:
        return self._file >= 0


def screen(output: str) -> list[str]:
    """Return the lines that a terminal shows after an output: carriage returns, and the sequences K and A, are done."""
    lines, row, column = [""], 0, 0
    for match in _SEQUENCE.finditer(output):
        text, (count, letter) = match.group(), match.groups()
        if text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, column
            lines += [""] * (row + 1 - len(lines))
        elif letter == "K":
            lines[row] = "" if count == "2" else lines[row][:column]
        elif letter == "A":
            row = max(0, row - int(count or 1))
        elif not text.startswith(("\x1b", "\x07")):
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]
