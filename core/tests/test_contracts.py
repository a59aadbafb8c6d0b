"""Checks of the backend contract: missing members, misspelt members, and options that backends check themselves."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lite_core import Device, GraphBuilder, KernelBackend, load
from lite_core.backend import Buffer, Executable, Options, Partition, TakesOptions
from lite_core.builtin import HostBackend, NullBackend
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.memory import HostMemory
from lite_core.plugins import PluginManager, hookimpl, plugins_with
from lite_core.plugins.contracts import Kind, missing_members, misspelt_members


def relu() -> Graph:
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    return b.build()


class Toy(KernelBackend):
    def __init__(self, name: str = "toy") -> None:
        super().__init__(name)
        self.kernel("Relu")(lambda x: np.maximum(x, 0))


def with_members(*names: str, base: type = object) -> object:
    return type("Made", (base,), {name: lambda self: None for name in names})()


MISSPELT: list[tuple[Kind, str, str]] = [
    ("backend", "restor", "restore"),
    ("backend", "Memory", "memory"),
    ("backend", "targets", "target"),
    ("backend", "compatability", "compatibility"),
    ("backend", "checkOptions", "check_options"),
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


def test_the_built_in_backends_have_no_misspelt_members() -> None:
    for backend in (HostBackend(), NullBackend(), Toy()):
        assert (missing_members(backend, "backend"), misspelt_members(backend, "backend")) == ([], [])
    assert (missing_members(HostMemory(), "memory"), misspelt_members(HostMemory(), "memory")) == ([], [])


def test_misspelt_member_of_a_registered_backend_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Misspelt(Toy):
        def reprot(self) -> Sequence[str]:
            return ["never called"]

    class Plugin:
        LITE_API_VERSION = 1

        @hookimpl
        def lite_backends(self) -> list[object]:
            return [Misspelt()]

    plugins = PluginManager(list)
    record = plugins.register(Plugin(), "misspelt")
    assert [backend.name for _, backend in plugins.ask("lite_backends")] == ["toy"]
    assert not record.failed
    (warning,) = record.warnings
    assert all(word in warning for word in ("'toy'", "'reprot'", "'report'"))
    assert warning in caplog.text


def test_misspelt_member_of_an_executable_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Misspelt:
        scratch_bytes = 0

        def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
            outputs[0].store(np.maximum(inputs[0].data, 0))

        def run_profile(self) -> None: ...

    class Backend(Toy):
        def compile(self, part: Partition, device: Device, options: Options) -> Executable:
            return Misspelt()

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            load(relu(), backend="toy", plugins=plugins_with(Backend())).run({"x": np.ones(2, np.float32)})
    (warning,) = [r.getMessage() for r in caplog.records if "run_profile" in r.getMessage()]
    assert all(word in warning for word in ("'toy'", "Misspelt", "'run_profile'", "'run_profiled'"))


class Choosy(Toy, TakesOptions):
    """A backend with one option."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Mapping[str, Any]] = []

    def check_options(self, options: Mapping[str, Any]) -> None:
        if set(options) - {"speed"}:
            raise InputError(f"backend 'toy' has no option {', '.join(options)}; it has: speed")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self.given.append(options.own)
        return super().compile(part, device, options)


def test_a_backend_gets_its_own_options_and_no_other() -> None:
    toy = Choosy()
    session = load(relu(), backend="toy", plugins=plugins_with(toy), backend_options={"toy": {"speed": 3}})
    session.prepare()
    load(relu(), backend="toy", plugins=plugins_with(toy)).prepare()
    assert [dict(own) for own in toy.given] == [{"speed": 3}, {}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"toy": {"sped": 1}}, "no option sped; it has: speed"),
        ({"plain": {"speed": 1}}, "'plain'.*speed"),
        ({"nonsense": {}}, "backend_options.*'nonsense'.*: host, null, plain, toy"),
        ({"toy": 3}, "backend_options"),
        (["toy"], "backend_options"),
    ],
)
def test_unknown_backend_options_are_refused(options: Any, message: str) -> None:
    plugins = plugins_with(Choosy(), Toy("plain"))
    with pytest.raises(InputError, match=message):
        load(relu(), backend=["toy", "plain"], plugins=plugins, backend_options=options)


def test_options_of_an_unused_backend_are_ignored_and_logged() -> None:
    given = {"toy": {"speed": 1}, "host": {}}
    session = load(relu(), backend="host", plugins=plugins_with(Choosy()), backend_options=given)
    assert any(line.startswith("toy:") and "backend_options" in line for line in session.selection_log)
