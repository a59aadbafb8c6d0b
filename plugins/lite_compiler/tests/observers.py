"""Observers of a run, and checks of what an observed plan shows, for the tests of every backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lite_core import Session
from lite_core.backend import Buffer, Executable
from lite_core.ir import Graph, Node, Value
from lite_core.observing import Observable, Observed, Observer
from lite_core.ops.evaluate import evaluate_graph
from lite_core.schedule import Plan

__all__ = ["ObservedExecutable", "Recorder", "assert_close", "check_observed", "references"]

Array = np.ndarray[Any, Any]


@dataclass
class Recorder:
    """An observer that keeps all values that it is shown, and replaces those in ``replaced`` afterwards."""

    replaced: Mapping[str, Array] = field(default_factory=dict)
    started: list[tuple[str, list[str]]] = field(default_factory=list)
    computed_by: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    values: dict[str, Array] = field(default_factory=dict)

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        self.started.append((kernel, [*nodes]))

    def computed(self, results: Observed) -> None:
        self.computed_by.append((results.kernel, [*results.nodes], [*results.values]))
        for name in results.values:
            assert name not in self.values, f"{name} is shown twice"
            self.values[name] = results.read(name)
        for name in results.values:
            if name in self.replaced:
                results.write(name, self.replaced[name])


class ObservedExecutable:
    """An executable whose ``run`` is the ``run_observed`` of another one."""

    def __init__(self, executable: Executable, observer: Observer) -> None:
        self._executable, self._observer = executable, observer
        self.scratch_bytes: int = executable.scratch_bytes

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        assert isinstance(self._executable, Observable)
        self._executable.run_observed(inputs, outputs, scratch, self._observer)


def references(graph: Graph, arrays: Sequence[Array]) -> dict[str, Array]:
    """Return all results of a graph's nodes by the references."""
    found: dict[str, Array] = {}

    def keep(node: Node, results: list[Array]) -> None:
        found.update((v.name, array) for v, array in zip(node.outputs, results) if v is not None)

    with np.errstate(all="ignore"):
        evaluate_graph(graph, arrays, observe=keep)
    return found


def assert_close(found: Array, truth: Array, name: str, tolerance: float = 2e-5) -> None:
    """Assert that floats differ by at most ``tolerance`` of the largest one, and that all else is equal.

    Quantized numbers may differ by one: those between two steps round either way.
    """
    assert (found.dtype, found.shape) == (truth.dtype, truth.shape), name
    if truth.dtype.kind != "f" and truth.dtype.itemsize > 1:
        np.testing.assert_array_equal(found, truth, err_msg=name)
        return
    if truth.dtype.kind != "f":
        tolerance = 0.0 if truth.dtype.kind == "b" else 1.0 / max(1, np.abs(truth.astype(np.int64)).max(initial=1))
    found, truth = found.astype(np.float64), truth.astype(np.float64)
    largest = float(np.abs(truth).max(initial=1.0))
    np.testing.assert_allclose(found, truth, rtol=0, atol=tolerance * largest, err_msg=name)


def check_observed(
    session: Session, arrays: Sequence[Array], others: Sequence[Array], tolerance: float = 2e-5
) -> Recorder:
    """Check everything that an observer of a session may rely on; return what one was shown.

    The plan is observed on ``arrays``: outputs must equal those of a plain run bit by bit, all values the references.
    Then every value is replaced by that of a run on ``others``. What later kernels compute must follow from that.
    """
    graph = session.graph
    plan = session.plan({value.name: array.shape for value, array in zip(graph.inputs, arrays)})
    plain = plan.run(arrays)
    recorder = Recorder()
    for one, other in zip(plan.run(arrays, observer=recorder), plain):
        assert one.tobytes() == other.tobytes()
    for output, array in zip(graph.outputs, plain):
        if output not in graph.constants:
            assert recorder.values[output.name].tobytes() == array.tobytes()
    for name, truth in references(graph, arrays).items():
        if name in recorder.values:
            assert_close(recorder.values[name], truth, name, tolerance)
    _check_replaced(plan, graph, arrays, references(graph, others), tolerance)
    assert [array.tobytes() for array in plan.run(arrays)] == [array.tobytes() for array in plain]
    return recorder


def _check_replaced(
    plan: Plan, graph: Graph, arrays: Sequence[Array], others: Mapping[str, Array], tolerance: float
) -> None:
    recorder = Recorder(others)
    outputs = plan.run(arrays, observer=recorder)
    computed_in = {n: k for k, (_, nodes, _) in reversed([*enumerate(recorder.computed_by)]) for n in nodes}
    shown_in = {name: k for k, (_, _, names) in enumerate(recorder.computed_by) for name in names}
    follows: set[Value] = {*graph.constants}  # values that were computed from replaced ones and constants alone
    for node in graph.nodes:
        own = computed_in.get(node.name, 0)
        if all(value in follows or shown_in.get(value.name, own) < own for value in node.used()):
            follows.update(value for value in node.outputs if value is not None)
    for value in follows:
        if value.name in recorder.values:
            assert_close(recorder.values[value.name], others[value.name], value.name, tolerance)
    for value, array in zip(graph.outputs, outputs):
        if value not in graph.constants:
            assert array.tobytes() == others[value.name].tobytes(), value.name
