"""Commands in a pseudo-terminal, which they take for a real one."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Shown", "in_terminal"]

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """The exit code of a command, and the text that a terminal shows in the end."""

    code: int
    text: str


def in_terminal(
    command: Sequence[str], width: int, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Shown:
    """Run a command in a terminal of this many columns; skip the test where there are no pseudo-terminals."""
    fcntl, termios, pty = (pytest.importorskip(name) for name in ("fcntl", "termios", "pty"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    settings = {k: v for k, v in (env or os.environ).items() if k not in ("COLUMNS", "NO_COLOR", "TTY_COMPATIBLE")}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env={**settings, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        pieces = []
        try:
            while piece := os.read(ours, 1 << 16):
                pieces.append(piece)
        except OSError:  # Linux reports the end of the other side as an error
            pass
        os.close(ours)
    text = _CONTROL.sub("", b"".join(pieces).decode(errors="replace")).replace("\r\n", "\n")
    return Shown(process.returncode, "\n".join(line.rpartition("\r")[2] for line in text.split("\n")))
