"""Asking backends for devices: invalid answers, and marks on disk of backends that end the process that asks them.

The processes that end are forks of this one, and the plugins are installed in a temporary folder.
"""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed_plugins import install, plugins_of

from lite_core.backend import Device, Unavailable
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import backend_sources, installed_backends, plugins_with
from lite_core.schedule import probing
from lite_core.schedule.probing import Faulty, probe
from lite_core.session import Session, load

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="Windows has no fork, and backends are not marked there"
)

#: A backend whose search for devices does what the file "action" in its folder says; without the file, it finds one.
DRIVER = """
import ctypes, os, signal, sys, time
from pathlib import Path
import numpy as np
from lite_core import Device, KernelBackend, hookimpl

LITE_API_VERSION = 1
action = Path(__file__).with_name("action")

def find():
    exec(action.read_text() if action.exists() else "")
    return [Device("{name}", score=100)]

backend = KernelBackend("{name}", device=find)

@backend.kernel("Relu", dtypes=["float32"])
def relu(x, *, out):
    np.maximum(x, 0, out=out)

@hookimpl
def lite_backends():
    return [backend]
"""


def relu() -> Graph:
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    return b.build()


class Driver:
    """An installed plugin with the backend ``gpu``."""

    def __init__(self, site: Path, cache: Path) -> None:
        install(site, "gpu", DRIVER)
        self.site, self.cache, self.action = site, cache, site / "action"
        self.plugins = plugins_of(site)

    def load(self, backend: str = "auto") -> Session:
        return load(relu(), backend=backend, plugins=self.plugins)

    def end_of_child(self, backend: str = "auto") -> int:
        """Load a model in a child, and return its exit code, or minus the signal that ended it; 77 if it has loaded."""
        return wait(fork(lambda: self.load(backend)))

    @property
    def marks(self) -> Path:
        (file,) = (self.cache / "probing").iterdir()
        return file

    def was_asked(self) -> bool:
        return self.load().devices == ("gpu",)


def fork(function: Callable[[], object]) -> int:
    """Call a function in a child, and return the child's process id."""
    child = os.fork()
    if child:
        return child
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()
        function()
        os._exit(77)
    finally:
        os._exit(78)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def driver(site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Driver:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("LITE_CACHE_DIR", str(cache))
    for name in ("LITE_BACKEND", "LITE_BACKENDS"):
        monkeypatch.delenv(name, raising=False)
    return Driver(site, cache)


# **** backends that end the process ****


@pytest.mark.parametrize(
    ("action", "end"),
    [
        ("os.abort()", -signal.SIGABRT),
        ("ctypes.string_at(0)", -signal.SIGSEGV),
        ("os._exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_backend_that_ends_a_process_is_left_out_and_named(
    driver: Driver, caplog: pytest.LogCaptureFixture, action: str, end: int
) -> None:
    driver.action.write_text(action)
    assert driver.end_of_child() == end
    session = driver.load()
    assert session.devices == ("host",)
    assert session.run(x=[-1, 1])["y"].tolist() == [0, 1]
    (line,) = (line for line in session.selection_log if line.startswith("gpu:"))
    assert re.search(r"lite-gpu 1\.0 .* before \d{4}-\d\d-\d\d \d\d:\d\d.*`lite backends`.*backend='gpu'", line)
    assert "'gpu'" in caplog.text
    assert "lite-gpu 1.0" in caplog.text


def test_backend_named_by_the_user_is_asked_again(driver: Driver) -> None:
    driver.action.write_text("os._exit(3)")
    assert driver.end_of_child() == 3
    assert driver.end_of_child() == 77
    assert driver.end_of_child("gpu") == 3
    driver.action.unlink()
    assert not driver.was_asked()
    assert driver.load("gpu").devices == ("gpu",)
    assert driver.was_asked()


def test_new_version_of_the_plugin_is_asked(driver: Driver) -> None:
    driver.action.write_text("os._exit(3)")
    assert driver.end_of_child() == 3
    backend = installed_backends(driver.plugins)["gpu"]
    assert isinstance(probe(backend, "lite-gpu 1.0", automatic=True), Unavailable)
    driver.action.unlink()
    assert probe(backend, "lite-gpu 1.1", automatic=True) == [Device("gpu", score=100)]


@pytest.mark.parametrize("action", ["1 / 0", "sys.exit(3)", "raise KeyboardInterrupt"])
def test_exceptions_leave_no_marks(driver: Driver, caplog: pytest.LogCaptureFixture, action: str) -> None:
    driver.action.write_text(action)
    if "Keyboard" in action:
        with pytest.raises(KeyboardInterrupt):
            driver.load()
    else:
        assert driver.load().devices == ("host",)
    assert "'gpu'" in caplog.text
    assert driver.marks.read_bytes() == b""
    driver.action.unlink()
    assert driver.was_asked()


def test_backend_that_the_user_waited_for_in_vain_is_left_out(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_PATIENCE_SECONDS", 0.0)
    driver.action.write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        driver.load()
    driver.action.unlink()
    assert not driver.was_asked()


def test_question_of_a_living_process_does_not_count(driver: Driver) -> None:
    began, go_on = driver.site / "began", driver.site / "go_on"
    driver.action.write_text(f"Path({str(began)!r}).touch()\nwhile not Path({str(go_on)!r}).exists(): time.sleep(0.01)")
    child = fork(driver.load)
    deadline = time.monotonic() + 60
    while not began.exists() and time.monotonic() < deadline:
        os.sched_yield()
    driver.action.unlink()
    assert driver.was_asked()
    os.kill(child, signal.SIGKILL)
    assert wait(child) == -signal.SIGKILL
    assert not driver.was_asked()


def test_processes_that_end_at_the_same_time_count_once(driver: Driver) -> None:
    driver.action.write_text("os._exit(3)")
    children = [fork(driver.load) for _ in range(8)]
    assert {wait(child) for child in children} <= {3, 77}
    assert 1 <= len(driver.marks.read_text().splitlines()) <= 8
    age(driver, 3601)
    driver.action.unlink()
    assert driver.was_asked()


def age(driver: Driver, *seconds: float) -> None:
    """Replace the times of the marks: one mark for each number of seconds, that long ago."""
    machine = driver.marks.read_text().split()[0]
    driver.marks.write_text("".join(f"{machine} {time.time() - s:.6f}\n" for s in seconds))


HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("ages", "is_asked"),
    [
        ([HOUR - 60], False),
        ([HOUR + 60], True),
        ([12 * HOUR, 9 * HOUR], False),  # 10 times the 3 hours between them
        ([34 * HOUR, 31 * HOUR], True),
        ([100 * DAY, 29 * DAY], False),
        ([100 * DAY, 31 * DAY], True),
        ([-HOUR], True),  # the clock was wrong
    ],
)
def test_backend_is_asked_again_after_a_time_that_grows(driver: Driver, ages: list[float], is_asked: bool) -> None:
    driver.action.write_text("os._exit(3)")
    assert driver.end_of_child() == 3
    driver.action.unlink()
    age(driver, *ages)
    assert driver.was_asked() == is_asked


@pytest.mark.parametrize("content", ["another-start-of-the-machine 4000000000.5\n", "", "\0\xff\n1e9\n", "x " * 1000])
def test_marks_of_another_start_and_damaged_marks_do_not_count(driver: Driver, content: str) -> None:
    driver.load()
    driver.marks.write_text(content.replace("4000000000.5", f"{time.time() - 60:.6f}"), encoding="latin-1")
    assert driver.was_asked()
    assert driver.marks.read_bytes() == b""


def test_without_a_cache_backends_are_asked_without_marks(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = driver.site / "a_file"
    in_the_way.touch()
    for setting in ("off", str(in_the_way)):
        monkeypatch.setenv("LITE_CACHE_DIR", setting)
        assert driver.was_asked()
        driver.action.write_text("os._exit(3)")
        assert driver.end_of_child() == 3
        driver.action.unlink()
        assert driver.was_asked()


def test_unusable_file_of_marks_is_left_alone(driver: Driver) -> None:
    driver.load()
    marks = driver.marks
    marks.unlink()
    os.mkfifo(marks)
    assert driver.was_asked()
    marks.unlink()
    marks.symlink_to(driver.site / "elsewhere")
    assert driver.was_asked()
    assert not (driver.site / "elsewhere").exists()


def test_backends_of_this_process_are_not_marked(driver: Driver) -> None:
    plugins = plugins_with(KernelBackend("mine"))
    assert load(relu(), plugins=plugins).devices == ("host",)
    assert probe(installed_backends(plugins)["mine"], backend_sources(plugins)["mine"]) == [Device("mine", name="mine")]
    assert not (driver.cache / "probing").exists()


# **** invalid answers ****


class Answering(KernelBackend):
    """A backend whose ``probe`` calls a function."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__("mine")
        self.kernel("Relu")(lambda x: np.maximum(x, 0))
        self.probe = answer  # type: ignore[method-assign]


def unknown_score() -> Any:
    return [Device("mine", score=float("nan"))]


def leave() -> Any:
    sys.exit(3)


def half() -> Any:
    yield Device("mine")
    raise OSError("the bus is gone")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda: None, "returned None"),
        (lambda: 7, "returned 7"),
        (lambda: Device("mine"), "returned Device"),
        (lambda: "mine", "returned"),
        (lambda: [Device("mine"), "gpu"], "'gpu'"),
        (lambda: [Device("other")], "'other'"),
        (lambda: [Device("mine", 0), Device("mine", 0)], "returned"),
        (lambda: [Device("mine", -1)], "-1"),
        (lambda: [Device("mine", index="0")], "index='0'"),  # type: ignore[arg-type]
        (lambda: [Device("mine", score="high")], "TypeError"),  # type: ignore[arg-type]
        (unknown_score, "nan"),
        (lambda: [Device("mine", name=None)], "name=None"),  # type: ignore[arg-type]
        (lambda: [Device("mine", details=["fast"])], "fast"),  # type: ignore[arg-type]
        (half, "OSError: the bus is gone"),
        (leave, "SystemExit: 3"),
    ],
)
def test_invalid_answer_is_a_fault_of_the_backend(answer: Callable[[], Any], text: str) -> None:
    backend = Answering(answer)
    found = probe(backend)
    assert isinstance(found, Faulty)
    assert text in found.reason
    session = load(relu(), plugins=plugins_with(backend))
    assert session.devices == ("host",)
    assert any(line.startswith("mine:") and text in line for line in session.selection_log)
    with pytest.raises(BackendUnavailableError, match="'mine'"):
        load(relu(), backend="mine", plugins=plugins_with(backend))


def test_valid_answers() -> None:
    two = [Device("mine", 1), Device("mine", 0, score=np.float32(2))]
    assert probe(Answering(lambda: iter(two))) == two
    nothing = probe(Answering(list))
    assert isinstance(nothing, Unavailable)
    assert not isinstance(nothing, Faulty)


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), type("Panic", (BaseException,), {})("rust")])
def test_exceptions_of_every_kind_count_as_refusals_and_failures_to_compile(error: BaseException) -> None:
    def fail(*_: object) -> Any:
        raise error

    for member in ("supports", "compile"):
        backend = KernelBackend("mine", device=lambda: [Device("mine", score=100)])
        backend.kernel("Relu")(lambda x: np.maximum(x, 0))
        setattr(backend, member, fail)
        session = load(relu(), plugins=plugins_with(backend))
        assert session.run(x=[-1, 1])["y"].tolist() == [0, 1]
        assert session.devices == ("host",)
        assert type(error).__name__ in session.describe()
