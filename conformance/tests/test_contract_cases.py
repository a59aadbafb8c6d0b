"""Levels 0 and 1 on names of members, and on a backend with options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from lite_conformance import Status, check_backend
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.drive.saved_state import Saved, restore_or_stale
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure
from lite_core.backend import Device, RestoresState
from lite_core.builder import GraphBuilder
from lite_core.builtin import HostBackend
from lite_core.errors import InputError
from lite_core.plugins import available_backends, default_plugins

CASES = ("probe[*]", "contract[member-names]", "contract[options]")


class WithOptions(HostBackend):
    """A backend with one option, and private members whose names resemble those of the contract."""

    name = "with_options"

    def __init__(self) -> None:
        self._restor = "private names are not checked"
        self.levels = (1, 2, 3)

    def probe(self) -> list[Device]:
        return [Device(self.name, name="a device")]

    def check_options(self, options: Mapping[str, Any]) -> None:
        unknown = options.keys() - {"level"}
        if unknown:
            raise InputError(f"{self.name} has no option {', '.join(unknown)}; it has: level")


def test_backend_with_options_and_private_names_passes() -> None:
    records = check_backend(WithOptions(), cases=CASES)
    assert {r.status for r in records} == {Status.PASSED}
    assert {"probe[member-names]", "contract[member-names]", "contract[options]"} < {r.case for r in records}


class OneSlip:
    def restor(self) -> None: ...


class SlipBesideItsProtocol(RestoresState):
    """The Protocol has a body for restore(), which returns None."""

    def restor(self) -> None: ...


class WithoutMember(RestoresState):
    """A class that only names the Protocol."""


class TwoSlips:
    note = ("a line for profiles",)

    def run_profile(self) -> None: ...


@pytest.mark.parametrize(
    ("thing", "kind", "names"),
    [
        (OneSlip(), "backend", ["'restor'", "restore()"]),
        (
            SlipBesideItsProtocol(),
            "backend",
            ["restore() is the Protocol's own: your class does not define it (restor?)"],
        ),
        (WithoutMember(), "backend", ["restore() is the Protocol's own: your class does not define it; define it"]),
        (TwoSlips(), "executable", ["'note'", "notes", "'run_profile'", "run_profiled()"]),
    ],
)
def test_reason_has_the_misspelt_and_the_intended_name(thing: object, kind: Any, names: list[str]) -> None:
    with pytest.raises(Failure, match=".*".join(map(re.escape, names))):
        require_well_spelt(thing, kind, "it")


def test_installed_backends_have_no_misspelt_members() -> None:
    for backend in available_backends(default_plugins()).values():
        require_well_spelt(backend, "backend", backend.name)


def test_restore_must_answer_with_an_executable_or_stale() -> None:
    class RestoresNone(WithOptions, RestoresState):
        """A backend whose restore() is the body of the Protocol."""

    subject = Subject(RestoresNone(), RestoresNone().probe()[0])
    saved = Saved(subject, GraphBuilder("empty").build(), [], None)
    with pytest.raises(Failure, match=re.escape("restore() returned None, expected an Executable or Stale(reason)")):
        restore_or_stale(saved)
