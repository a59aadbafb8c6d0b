"""The suite from Python: by name, by where it is, and with the backend itself; arguments are checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lite_conformance import Status, check_backend
from lite_core.backend import Device, Unavailable
from lite_core.builtin import HostBackend
from lite_core.errors import BackendUnavailableError, InputError, PluginError

HERE = Path(__file__).parent
RELU = ("Relu[f32,drawn]",)


@pytest.mark.parametrize("backend", ["host", "host:0", f"{HERE / 'wrong_backends.py'}:backend_right"])
def test_by_name_and_by_file(backend: str) -> None:
    (record,) = check_backend(backend, cases=RELU, examples=2)
    assert (record.status, record.examples) == (Status.PASSED, 2)
    assert record.backend == ("right" if "right" in backend else "host")


def test_the_backend_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever set this meant programs that say nothing else.
    monkeypatch.setenv("LITE_BACKEND", "null")
    records = check_backend(HostBackend(), cases=("probe[*]", "contract[session]", *RELU), examples=2)
    assert len(records) == 7
    assert {r.status for r in records} == {Status.PASSED}
    assert {r.device for r in records} == {records[0].device}


class SecondDevice(HostBackend):
    name = "elsewhere"
    answer: Any = ()

    def probe(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def with_probe(answer: Any) -> SecondDevice:
    backend = SecondDevice()
    backend.answer = answer
    return backend


def test_one_pattern_may_be_a_text() -> None:
    backend = with_probe([Device("elsewhere", 3, "a device")])
    (record,) = check_backend(backend, cases="Relu[f32,drawn]", examples=2)
    assert (record.status, record.device) == (Status.PASSED, "elsewhere:3: a device")


def test_a_backend_that_leaves_is_a_failure() -> None:
    (record,) = check_backend(with_probe(SystemExit(0)), cases=RELU)
    assert (record.case, record.status) == ("probe[open]", Status.FAILED)
    assert "probe() raised SystemExit: 0" in record.reason


@pytest.mark.parametrize("answer", [Unavailable("no driver", "install it"), [], [5], ValueError("no luck")])
def test_without_a_device(answer: Any) -> None:
    with pytest.raises(BackendUnavailableError, match="backend 'elsewhere' is not available: "):
        check_backend(with_probe(answer), cases=RELU)


def test_a_name_that_is_not_installed_lists_what_is() -> None:
    with pytest.raises(BackendUnavailableError, match=r"backend 'nobody' is not installed \(here are: .*host"):
        check_backend("nobody", cases=RELU)
    with pytest.raises(BackendUnavailableError, match=r"backend 'host' has no device 7; it has: host"):
        check_backend("host:7", cases=RELU)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": 5}, "5 is not a backend: it lacks name, probe, supports, compile"),
        ({"level": "L6"}, "a level is L0 to L5 (all up to it) or a range such as L2-L3, is 'L6'"),
        ({"level": "L3-L2"}, "is 'L3-L2'"),
        ({"seed": -1}, "seed must be a whole number of at least 0, is -1"),
        ({"examples": 0}, "examples must be a whole number of at least 1, is 0"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, is 0"),
        ({"timeout": 0.0}, "timeout must be a number of seconds above 0, is 0.0"),
        ({"timeout": float("nan")}, "is nan"),
        ({"timeout": float("inf")}, "is inf"),
        ({"cases": ["Relu[f32,nothing]"]}, "no case is called 'Relu[f32,nothing]'; near it are: Relu["),
        ({"expectations": "nowhere.toml"}, "nowhere.toml cannot be read"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_backend(**{"backend": "host", "cases": RELU, **arguments})


def test_a_huge_seed_is_a_seed() -> None:
    (record,) = check_backend(HostBackend(), cases=RELU, seed=2**100, examples=1)
    assert (record.status, record.seed, record.examples) == (Status.PASSED, 2**100, 1)


def test_a_name_that_is_taken_is_not_mistaken_for_its_owner() -> None:
    class Another(HostBackend):
        """Its sessions would run on the backend that comes with Lite."""

    with pytest.raises(PluginError, match="the backend name 'host' is taken by lite-core itself"):
        check_backend(Another(), cases=RELU)
