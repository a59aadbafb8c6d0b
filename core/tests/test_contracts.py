"""The contract in types: what is missing, what looks misspelt, and options that backends check themselves."""

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
def test_other_members_are_an_authors_own(name: str) -> None:
    kinds: tuple[Kind, ...] = ("backend", "executable", "memory")
    assert all(misspelt_members(with_members(name), kind) == [] for kind in kinds)


def test_the_built_in_backends_have_no_misspelt_members() -> None:
    for backend in (HostBackend(), NullBackend(), Toy()):
        assert (missing_members(backend, "backend"), misspelt_members(backend, "backend")) == ([], [])
    assert (missing_members(HostMemory(), "memory"), misspelt_members(HostMemory(), "memory")) == ([], [])


def test_registering_names_a_misspelt_member_and_takes_the_backend_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Misspelt(Toy):
        def reprot(self) -> Sequence[str]:
            return ["never asked"]

    class Plugin:
        LITE_API_VERSION = 1

        @hookimpl
        def lite_backends(self) -> list[object]:
            return [Misspelt()]

    plugins = PluginManager(list)
    record = plugins.register(Plugin(), "misspelt")
    assert [backend.name for _, backend in plugins.ask("lite_backends")] == ["toy"]
    assert not record.failed
    assert record.warnings == ["backend 'toy' has 'reprot', which is never used: it looks like a misspelt 'report'"]
    assert record.warnings[0] in caplog.text


def test_compiling_names_a_misspelt_member_of_an_executable_once(caplog: pytest.LogCaptureFixture) -> None:
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
    named = [r.getMessage() for r in caplog.records if "run_profile" in r.getMessage()]
    assert named == [
        "backend 'toy': its Misspelt has 'run_profile', which is never used: it looks like a misspelt 'run_profiled'"
    ]


class Choosy(Toy, TakesOptions):
    """A backend with an option of its own."""

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
        ({"plain": {"speed": 1}}, "backend 'plain' has no options of its own, given: speed"),
        (
            {"nonsense": {}},
            "backend_options names 'nonsense', and no such backend is installed: host, null, plain, toy",
        ),
        ({"toy": 3}, "backend_options must be like"),
        (["toy"], "backend_options must be like"),
    ],
)
def test_options_that_nobody_has_are_refused(options: Any, message: str) -> None:
    plugins = plugins_with(Choosy(), Toy("plain"))
    with pytest.raises(InputError, match=message):
        load(relu(), backend=["toy", "plain"], plugins=plugins, backend_options=options)


def test_options_of_a_backend_that_is_not_used_are_passed_over_and_said() -> None:
    given = {"toy": {"speed": 1}, "host": {}}
    session = load(relu(), backend="host", plugins=plugins_with(Choosy()), backend_options=given)
    assert "toy: its backend_options are passed over, this session does not use it" in session.selection_log
