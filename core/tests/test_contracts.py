"""Checks of the backend contract: missing members, and options that backends check themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lite_core import Device, GraphBuilder, KernelBackend, load
from lite_core.backend import Executable, Options, Partition, TakesOptions
from lite_core.builtin import HostBackend, NullBackend
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.memory import HostMemory
from lite_core.plugins import plugins_with
from lite_core.plugins.contracts import missing_members


def relu() -> Graph:
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    return b.build()


class Toy(KernelBackend):
    def __init__(self, name: str = "toy") -> None:
        super().__init__(name)
        self.kernel("Relu")(lambda x: np.maximum(x, 0))


def test_the_built_in_backends_lack_no_members() -> None:
    for backend in (HostBackend(), NullBackend(), Toy()):
        assert missing_members(backend, "backend") == []
    assert missing_members(HostMemory(), "memory") == []
    assert missing_members(object(), "backend") == ["name", "probe", "supports", "compile"]


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
