"""What levels 0 and 1 find in the names of members, and how they treat a backend with options of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from lite_conformance import Status, check_backend
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.judge.outcome import Failure
from lite_core.backend import Device
from lite_core.builtin import HostBackend
from lite_core.errors import InputError
from lite_core.plugins import available_backends, default_plugins

CASES = ("probe[*]", "contract[member-names]", "contract[options]")


class WithOptions(HostBackend):
    """Has one option, and members of its own that are named like those of the contract."""

    name = "with_options"

    def __init__(self) -> None:
        self._restor = "private names are its own"
        self.levels = (1, 2, 3)

    def probe(self) -> list[Device]:
        return [Device(self.name, name="a device")]

    def check_options(self, options: Mapping[str, Any]) -> None:
        unknown = options.keys() - {"level"}
        if unknown:
            raise InputError(f"{self.name} has no option {', '.join(unknown)}; it has: level")


def test_a_backend_with_options_and_names_of_its_own_passes() -> None:
    records = check_backend(WithOptions(), cases=CASES)
    assert {r.status for r in records} == {Status.PASSED}
    assert {"probe[member-names]", "contract[member-names]", "contract[options]"} < {r.case for r in records}


class OneSlip:
    def restor(self) -> None: ...


class TwoSlips:
    note = ("a line for profiles",)

    def run_profile(self) -> None: ...


@pytest.mark.parametrize(
    ("thing", "kind", "reason"),
    [
        (
            OneSlip(),
            "backend",
            "it has 'restor', which looks like a misspelt restore(): "
            "rename it, or begin it with an underscore if it is your own",
        ),
        (
            TwoSlips(),
            "executable",
            "it has 'note', which looks like a misspelt notes, and 'run_profile', which looks like a misspelt "
            "run_profiled(): rename each, or begin it with an underscore if it is your own",
        ),
    ],
)
def test_the_reason_names_what_is_there_and_what_is_meant(thing: object, kind: Any, reason: str) -> None:
    with pytest.raises(Failure, match=f"^{re.escape(reason)}$"):
        require_well_spelt(thing, kind, "it")


def test_no_backend_that_is_installed_looks_misspelt() -> None:
    for backend in available_backends(default_plugins()).values():
        require_well_spelt(backend, "backend", backend.name)
