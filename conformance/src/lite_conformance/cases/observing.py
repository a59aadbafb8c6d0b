"""Cases of level 1: observed runs, in which an observer reads and replaces what kernels compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.supported import supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Compiled, require_same, same_bits
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_core.backend import Buffer, Executable
from lite_core.ir import Graph
from lite_core.observing import Observable, Observed

__all__ = ["CHECKS"]


def _observed_runs(context: Context) -> Outcome:
    """Require of the optional run_observed() the results of run(), which an observer sees and can replace."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        compiled = context.subject.compile(graph)
        if not isinstance(compiled.executable, Observable):
            raise Refused("being observed is optional: the executable has no run_observed()")
        expected = compiled.run(inputs)
        observer = _Observer(case.name, graph, {})
        outputs = _observed(context, compiled, observer).run(inputs)
        require_same(expected, outputs, f"{case.name}: run_observed()")
        for value, array in zip(graph.outputs, outputs):
            if value not in graph.inputs and value not in graph.constants:
                _require_seen(case.name, observer.seen, value.name, array)
        others = {name: np.flip(array).copy() for name, array in observer.seen.items()}
        replaced = _observed(context, compiled, _Observer(case.name, graph, others)).run(inputs)
        wanted = [others.get(value.name, array) for value, array in zip(graph.outputs, expected)]
        require_same(wanted, replaced, f"{case.name}: outputs that an observer replaced")
        require_same(expected, compiled.run(inputs), f"{case.name}: after observed runs, a run")
    return Outcome(examples=4 * len(supported_cases(context.subject)))


CHECKS = (_observed_runs,)


def _require_seen(case: str, seen: Mapping[str, Array], name: str, array: Array) -> None:
    if name not in seen:
        raise Failure(f"{case}: run_observed() showed {[*seen]}, not the output {name!r}")
    if not same_bits(seen[name], array):
        raise Failure(f"{case}: run_observed() showed another array for the output {name!r} than it returned")


class _Observer:
    """An observer that keeps what it is shown, and replaces the values in ``others``."""

    def __init__(self, case: str, graph: Graph, others: Mapping[str, Array]) -> None:
        self._case, self._others = case, others
        self._nodes = {node.name for node in graph.nodes}
        self._types = {value.name: value.type for value in graph.defined()}
        self._started: list[str] = []
        self.seen: dict[str, Array] = {}

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        if not self._nodes.issuperset(nodes):
            raise Failure(f"{self._case}: kernel {kernel!r} computes {[*nodes]}, the nodes are {sorted(self._nodes)}")
        self._started.append(kernel)

    def computed(self, results: Observed) -> None:
        if self._started[-1:] != [results.kernel]:
            raise Failure(f"{self._case}: {results.kernel!r} computed results, and {self._started[-1:]} had started")
        for name in results.values:
            array = results.read(name)
            if name not in self._types:
                raise Failure(f"{self._case}: run_observed() showed {name!r}, which the graph does not have")
            type = self._types[name]
            if array.dtype != type.dtype.numpy or not type.accepts(array.shape):
                raise Failure(f"{self._case}: {name!r} is {type}, was shown as {array.dtype}{list(array.shape)}")
            self.seen[name] = array
            if name in self._others:
                results.write(name, self._others[name])


def _observed(context: Context, compiled: Compiled, observer: _Observer) -> Compiled:
    return Compiled(context.subject, compiled.graph, _ObservedExecutable(compiled.executable, observer))


class _ObservedExecutable:
    """An executable whose ``run`` is the ``run_observed`` of another."""

    def __init__(self, executable: Executable, observer: _Observer) -> None:
        self._executable, self._observer = executable, observer
        self.scratch_bytes: int = executable.scratch_bytes

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        assert isinstance(self._executable, Observable)
        self._executable.run_observed(inputs, outputs, scratch, self._observer)
