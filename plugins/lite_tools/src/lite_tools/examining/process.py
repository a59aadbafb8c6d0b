"""Running the process that examines plugins (:mod:`lite_tools.examining.program`), and how it ended."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lite_core.errors import InputError, LiteError
from lite_core.plugins import PluginRecord

__all__ = ["Course", "Key", "key_of", "module_path", "run"]

#: Identifies a plugin in several processes: distribution, name, module.
Key = tuple[str, str, str]

_DEFAULT_TIMEOUT_SECONDS = 20.0
_POLL_SECONDS = 0.2

#: How much is kept of what the process wrote to standard error, and of the names of the libraries that it loaded.
_MOST_LINES, _MOST_LIBRARIES = 12, 10

#: Lines in the stacks of a process that has crashed which are the same for every plugin.
_NOISE = re.compile(
    r'^Extension modules:|^  File "(<frozen importlib|<string>|.*[/\\](importlib|lite_core|lite_tools)[/\\])'
)

#: The program of the process. Python puts the working folder at the beginning of the path of modules. The first line,
#: which imports no file, replaces the path, so that nothing is imported from the working folder.
_PROGRAM = """import sys; sys.path[:] = sys.argv[1].split({separator!r})
from lite_tools.examining.program import main; main()"""


@dataclass
class Course:
    """The course of one process.

    Attributes:
        found: what it has found out about the plugins that it has examined to the end, as plain data.
        has_ended_well: True if these are all plugins that it was to examine.
        plugin: the plugin that it was busy with when it ended; None if it did not come so far.
        phase, step: short name and description of what it did with the plugin.
        backend: the backend that this concerned; may be empty.
        has_hung: True if it did not answer in time.
        end: how it ended, as a part of a sentence.
        output: the last lines that it has written to standard error.
        libraries: native libraries that it has loaded during the last step.
    """

    found: dict[Key, dict[str, Any]] = field(default_factory=dict)
    has_ended_well: bool = False
    plugin: Key | None = None
    phase: str = ""
    step: str = ""
    backend: str = ""
    has_hung: bool = False
    end: str = ""
    output: str = ""
    libraries: list[str] = field(default_factory=list)
    _log_size: int = 0  # of the list of loaded libraries, before the step

    def take(self, event: dict[str, Any]) -> None:
        """Note what the process announces."""
        if "found" in event:
            self.found[_key(event)] = event["found"]
            self.plugin = None
        elif "step" in event:
            self.plugin, self._log_size = _key(event), event["log_size"]
            self.phase, self.step, self.backend = event["phase"], event["step"], event["backend"]
        else:
            self.has_ended_well = True

    def conclude(self, code: int, timeout: float, output: str, log: Path) -> None:
        """Note how the process has ended: its exit code, what it has written, and the log of loaded libraries."""
        self.end = f"no answer within {timeout:g} s (LITE_PROBE_TIMEOUT)" if self.has_hung else _end(code)
        self.output = "\n".join([line for line in output.splitlines() if not _NOISE.search(line)][-_MOST_LINES:])
        with contextlib.suppress(OSError), open(log, encoding="utf-8", errors="replace") as file:
            file.seek(self._log_size)
            loaded = re.findall(r"calling init: (\S+)", file.read())
            paths = [os.path.normpath(path) for path in loaded if ".cpython-" not in path]  # not Python's own modules
            self.libraries = [*dict.fromkeys(paths)][-_MOST_LIBRARIES:]


def key_of(record: PluginRecord) -> Key:
    """Return what identifies a plugin in several processes."""
    return record.distribution, record.name, record.module


def run(plugins: Sequence[Key], hooks: Sequence[str], fatal: Sequence[Key], site: str = "") -> Course:
    """Examine plugins in a new process, until it ends or does not answer in time.

    Args:
        plugins: the plugins to examine, in this order.
        hooks: the hooks whose items are tried; ``report`` stands for the reports of backends.
        fatal: plugins that must not be imported, even if another one uses them.
        site: a folder with packages that come before all others.

    Raises:
        InputError: LITE_PROBE_TIMEOUT is not a number of seconds.
        LiteError: there is no Python interpreter to start.
    """
    course, timeout = Course(), _timeout()
    with tempfile.TemporaryDirectory(prefix="lite-", ignore_cleanup_errors=True) as folder:
        with open(Path(folder, "output"), "w+", encoding="utf-8", errors="replace") as output:
            request = {"plugins": plugins, "hooks": hooks, "timeout": timeout, "fatal": fatal}
            path = [*filter(None, [site]), *module_path()]
            process = _start(request, path, Path(folder, "libraries"), output)
            try:
                _follow(process, course, timeout)
            finally:
                _end_all(process)
            output.seek(0)
            written = output.read()
        if course.has_ended_well:
            print(written, end="", file=sys.stderr)
        else:
            course.conclude(process.returncode, timeout, written, Path(folder, f"libraries.{process.pid}"))
    return course


def _start(request: dict[str, Any], path: Sequence[str], log: Path, output: IO[str]) -> subprocess.Popen[bytes]:
    if not sys.executable or getattr(sys, "frozen", False):
        raise LiteError("plugins are examined in a separate process, and there is no Python interpreter to run in it")
    environment = dict(os.environ)
    if sys.platform == "linux" and "LD_DEBUG" not in environment:
        # The system's loader lists the libraries that it loads: a driver that crashes is one of the last.
        environment |= {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)}
    flags = [f for f, is_set in (("-I", sys.flags.isolated), ("-E", sys.flags.ignore_environment)) if is_set]
    program = [_PROGRAM.format(separator=os.pathsep), os.pathsep.join(path), json.dumps(request)]
    shows_log = any(os.environ.get(name) for name in ("LITE_LOG", "GLOG_v", "LITE_TRACE_PLUGINS"))
    return subprocess.Popen(
        [sys.executable, *flags, "-X", "faulthandler", "-c", *program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if shows_log else output,
        env=environment,
        start_new_session=True,  # so that it can be ended together with the processes that it starts
    )


def module_path() -> list[str]:
    """Return this process's path of modules without the working folder, with which ``python -m`` begins it."""
    begins_with_folder = sys.path[0] in ("", os.getcwd()) and not getattr(sys.flags, "safe_path", False)
    return [path for path in sys.path[begins_with_folder:] if path]


def _follow(process: subprocess.Popen[bytes], course: Course, timeout: float) -> None:
    """Note what the process announces, until it ends, or has announced nothing for too long."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    latest = time.monotonic()
    while not course.has_ended_well:
        try:
            line = lines.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            course.has_hung = time.monotonic() - latest > timeout
            # A process that has ended leaves the pipe open if it has started others.
            if course.has_hung or process.poll() is not None:
                return
            continue
        if not line.endswith(b"\n"):  # the pipe is closed: the process ends
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
            return
        latest = time.monotonic()
        course.take(json.loads(line))


def _read(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put(b"")


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End a process, unless it has ended, and those that it has started."""
    process.poll()  # keeps the exit code of a process that has ended
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _end(code: int) -> str:
    if code >= 0:
        return f"it ended its process with exit code {code if code < 2**16 else hex(code)}"
    try:
        return f"it ended its process by {signal.Signals(-code).name} ({signal.strsignal(-code)})"
    except ValueError:
        return f"it ended its process by signal {-code}"


def _key(event: dict[str, Any]) -> Key:
    distribution, name, module = event["plugin"]
    return distribution, name, module


def _timeout() -> float:
    text = os.environ.get("LITE_PROBE_TIMEOUT") or str(_DEFAULT_TIMEOUT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"LITE_PROBE_TIMEOUT must be a number of seconds, such as 20, is {text!r}")
    return seconds
