"""Detection of misspelt optional members."""

from __future__ import annotations

import pytest

from lite_core import KernelBackend
from lite_core.backend import ProvidesMemory, RestoresState
from lite_core.builtin import HostBackend, NullBackend
from lite_core.memory import HostMemory
from lite_core.plugins.contracts import Kind
from lite_tools.checking import misspelt_members, undefined_members


def with_members(*names: str, base: type = object) -> object:
    return type("Made", (base,), {name: lambda self: None for name in names})()


MISSPELT: list[tuple[Kind, str, str]] = [
    ("backend", "restor", "restore"),
    ("backend", "Memory", "memory"),
    ("backend", "targets", "target"),
    ("backend", "compatability", "compatibility"),
    ("backend", "checkOptions", "check_options"),
    ("backend", "stacks", "stack"),
    ("executable", "run_profile", "run_profiled"),
    ("executable", "saves", "save"),
    ("executable", "note", "notes"),
    ("memory", "views", "view"),
    ("memory", "synchronise", "synchronize"),
]


@pytest.mark.parametrize(("kind", "found", "meant"), MISSPELT)
def test_a_misspelt_optional_member_is_found(kind: Kind, found: str, meant: str) -> None:
    assert misspelt_members(with_members(found), kind) == [(found, meant)]
    assert misspelt_members(type(with_members(found)), kind) == [(found, meant)]
    assert misspelt_members(with_members(found, meant), kind) == []


@pytest.mark.parametrize("name", ["_restor", "close", "machine", "name", "options", "save_everything", "constants"])
def test_unrelated_members_are_allowed(name: str) -> None:
    kinds: tuple[Kind, ...] = ("backend", "executable", "memory")
    assert all(misspelt_members(with_members(name), kind) == [] for kind in kinds)


def test_the_body_of_a_protocol_counts_as_lacking() -> None:
    class Slip(RestoresState, ProvidesMemory):
        def restor(self) -> None: ...

        def memory(self, device: object) -> HostMemory:  # type: ignore[override]
            return HostMemory()

    for checked in (Slip, Slip()):
        assert misspelt_members(checked, "backend") == [("restor", "restore")]
        assert undefined_members(checked, "backend") == ["restore"]


def test_the_built_in_backends_have_no_misspelt_members() -> None:
    for backend in (HostBackend(), NullBackend(), KernelBackend("toy")):
        assert misspelt_members(backend, "backend") == []
    assert misspelt_members(HostMemory(), "memory") == []
