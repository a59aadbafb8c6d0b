"""``check_backend`` with names, files and backend objects, and its checks of arguments."""

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
def test_backend_is_named_or_given_by_file(backend: str) -> None:
    (record,) = check_backend(backend, cases=RELU, examples=2)
    assert (record.status, record.examples) == (Status.PASSED, 2)
    assert record.backend == ("right" if "right" in backend else "host")


def test_backend_object(monkeypatch: pytest.MonkeyPatch) -> None:
    # The variable must not redirect the suite's sessions.
    monkeypatch.setenv("LITE_BACKEND", "null")
    records = check_backend(HostBackend(), cases=("probe[*]", "contract[session]", *RELU), examples=2)
    assert {"probe[devices]", "contract[session]", *RELU} <= {r.case for r in records}
    assert {r.status for r in records} == {Status.PASSED}
    assert {r.device for r in records} == {records[0].device}


class ConfigurableProbe(HostBackend):
    """A backend whose ``probe`` returns, or raises, ``answer``."""

    name = "configurable"
    answer: Any = ()

    def probe(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def with_probe(answer: Any) -> ConfigurableProbe:
    backend = ConfigurableProbe()
    backend.answer = answer
    return backend


def test_single_pattern_may_be_a_string() -> None:
    backend = with_probe([Device("configurable", 3, "a device")])
    (record,) = check_backend(backend, cases="Relu[f32,drawn]", examples=2)
    assert (record.status, record.device) == (Status.PASSED, "configurable:3: a device")


def test_backend_that_raises_system_exit_fails() -> None:
    (record,) = check_backend(with_probe(SystemExit(0)), cases=RELU)
    assert (record.case, record.status) == ("probe[open]", Status.FAILED)
    assert "SystemExit: 0" in record.reason


@pytest.mark.parametrize("answer", [Unavailable("no driver", "install it"), [], [5], ValueError("no luck")])
def test_backend_without_device_is_unavailable(answer: Any) -> None:
    with pytest.raises(BackendUnavailableError, match="configurable"):
        check_backend(with_probe(answer), cases=RELU)


def test_unknown_backend_name_lists_the_installed_ones() -> None:
    with pytest.raises(BackendUnavailableError, match=r"'no_such_backend'.*\bhost\b"):
        check_backend("no_such_backend", cases=RELU)
    with pytest.raises(BackendUnavailableError, match=r"device 7.*\bhost\b"):
        check_backend("host:7", cases=RELU)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": 5}, "name, probe, supports, compile"),
        ({"level": "L6"}, "'L6'"),
        ({"level": "L3-L2"}, "'L3-L2'"),
        ({"seed": -1}, "-1"),
        ({"examples": 0}, "examples"),
        ({"jobs": 0}, "jobs"),
        ({"timeout": 0.0}, "timeout"),
        ({"timeout": float("nan")}, "nan"),
        ({"timeout": float("inf")}, "inf"),
        ({"cases": ["Relu[f32,nothing]"]}, "'Relu[f32,nothing]'"),
        ({"expectations": "nowhere.toml"}, "nowhere.toml"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_backend(**{"backend": "host", "cases": RELU, **arguments})


def test_huge_seed_is_valid() -> None:
    (record,) = check_backend(HostBackend(), cases=RELU, seed=2**100, examples=1)
    assert (record.status, record.seed, record.examples) == (Status.PASSED, 2**100, 1)


def test_backend_object_with_an_installed_name_is_rejected() -> None:
    class Another(HostBackend):
        """A backend whose sessions would run on the built-in backend of the same name."""

    with pytest.raises(PluginError, match="'host'"):
        check_backend(Another(), cases=RELU)
