"""The x86-64 levels that this processor can run, as backends for tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from lite_core import load
from lite_core.backend import Device
from lite_core.ir import Graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.backend import CpuBackend
from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4, Machine

Array = np.ndarray[Any, Any]


def runnable_machines() -> list[Machine]:
    """Return the x86-64 levels that this processor supports; none on other processors."""
    features = binding.get_host_cpu_features()
    needs = {"sse4.2": X86_64_V2, "avx2": X86_64_V3, "avx512vl": X86_64_V4}
    return [machine for feature, machine in needs.items() if features.get(feature)]


def machine_params(machines: Sequence[Machine] | None = None) -> list[Any]:
    """Return parameters for tests of every runnable level; `make test` runs the last one, the full tier the others.

    Args:
        machines: the machines, the best last; those of :func:`runnable_machines` by default.
    """
    found = runnable_machines() if machines is None else machines
    return [
        pytest.param(machine, id=machine.name, marks=[] if machine is found[-1] else pytest.mark.full("cpu"))
        for machine in found
    ]


class LevelBackend(CpuBackend):
    """A backend with the kernels of lite-cpu for one level."""

    def __init__(self, machine: Machine) -> None:
        super().__init__("level")
        self._machine = machine

    def machine(self) -> Machine:
        return self._machine

    def probe(self) -> Sequence[Device]:
        return [Device("level", name=self._machine.name)]


@cache
def backend_for(machine: Machine) -> LevelBackend:
    """Return the only backend of a level, so that kernels are compiled once for all tests."""
    return LevelBackend(machine)


def run_on(
    machine: Machine, graph: Graph, inputs: dict[str, Array], *, threads: int = 1, **options: Any
) -> dict[str, Array]:
    """Run a graph on one level; a node without a CPU kernel is an error."""
    plugins = plugins_with(backend_for(machine))
    session = load(graph, backend="level", plugins=plugins, threads=threads, fallback="never", **options)
    return session.run(inputs)
