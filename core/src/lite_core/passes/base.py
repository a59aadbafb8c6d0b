"""What a graph pass is, and running several with an optional check of each.

A pass is a callable object with a ``name``; it may edit the graph it is given and returns
``PassResult(graph, changed)``. Its docstring lists its rules, numbered. It keeps the graph's inputs and
outputs (names, order, types), the graph valid, and the numbers the same up to rounding.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from lite_core import ops
from lite_core.errors import GraphError, LiteError, PassError
from lite_core.ir import DType, Graph

__all__ = ["Pass", "PassRecord", "PassResult", "run_passes"]

logger = logging.getLogger("lite.passes")

_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class PassResult:
    """The graph a pass leaves behind and whether it changed anything."""

    graph: Graph
    changed: bool


@runtime_checkable
class Pass(Protocol):
    """A graph rewrite that helps every backend."""

    name: str

    def __call__(self, graph: Graph) -> PassResult: ...


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one run of one pass did: for tables and logs."""

    name: str
    round: int
    changed: bool
    nodes_before: int
    nodes_after: int
    seconds: float
    #: Largest difference of an output over that output's range; None when not checked.
    error: float | None = None


@dataclass(slots=True)
class _Checker:
    """Compares a graph with the one it came from on random input."""

    compare: Callable[[Graph, Graph], float]
    tolerance: float
    before: Graph | None = field(default=None)

    def remember(self, graph: Graph) -> None:
        self.before = graph.copy()

    def check(self, name: str, graph: Graph) -> float:
        assert self.before is not None
        _verify(name, graph)
        try:
            error = self.compare(self.before, graph)
        except PassError as problem:
            raise PassError(f"pass {name!r} broke graph {graph.name!r}: {problem}") from problem
        allowed = self.tolerance * _rounding_factor(self.before)
        if not error <= allowed:
            raise PassError(
                f"pass {name!r} changed the result of graph {graph.name!r}: the largest difference is "
                f"{error:.3g} of an output's range, allowed is {allowed:.3g}; leave the pass out and report it"
            )
        return error


def _apply(pass_: Pass, graph: Graph) -> PassResult:
    """Run a pass; what a plugin's pass does wrong is an error that names it."""
    try:
        result = pass_(graph)
    except LiteError:
        raise
    except Exception as error:
        raise PassError(
            f"pass {pass_.name!r} failed on graph {graph.name!r} with {type(error).__name__}: {error}"
        ) from error
    if not isinstance(result, PassResult):
        raise PassError(f"pass {pass_.name!r} gave {type(result).__name__}, not a PassResult")
    if result.changed and not type(pass_).__module__.startswith("lite_core."):
        _verify(pass_.name, result.graph)
    return result


def _verify(name: str, graph: Graph) -> None:
    try:
        ops.verify(graph)
    except GraphError as problem:
        raise PassError(f"pass {name!r} left a graph that is not valid: {problem}") from problem


def _rounding_factor(graph: Graph) -> float:
    """How much coarser than float32's the tolerance is, by the coarsest element type of the graph.

    A pass moves the places where values are rounded, so an error of a few roundings is to be expected.
    """
    dtypes = {value.dtype for scope in graph.walk() for value in scope.defined()}
    return 800.0 if DType.BFLOAT16 in dtypes else 100.0 if DType.FLOAT16 in dtypes else 1.0


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    *,
    check: bool = False,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> tuple[Graph, list[PassRecord]]:
    """Run passes in order, again and again until none changes anything (at most 8 rounds).

    Args:
        graph: not changed; the result is a copy.
        passes: what to run.
        check: after each pass that changed something, run the graph before and after on the same
            random input and compare; also verify its structure.
        tolerance: with ``check``, the largest difference allowed, as a share of each output's range; 100
            times that for graphs with float16 values and 800 times with bfloat16.
        seed: with ``check``, the seed of the random input.

    Returns:
        The graph and one record for each pass run.

    Raises:
        PassError: a pass failed, or, with ``check``, changed the result or broke the graph; names the pass.
    """
    checker = None
    if check:
        from lite_tools.checking.comparison import compare_graphs

        checker = _Checker(lambda a, b: compare_graphs(a, b, seed=seed), tolerance)
    graph = graph.copy()
    records: list[PassRecord] = []
    for round_number in range(1, _MOST_ROUNDS + 1):
        any_changed = False
        for pass_ in passes:
            if checker:
                checker.remember(graph)
            nodes, start = len(graph.nodes), time.perf_counter()
            result = _apply(pass_, graph)
            seconds = time.perf_counter() - start
            graph = result.graph
            error = checker.check(pass_.name, graph) if result.changed and checker else None
            records.append(
                PassRecord(pass_.name, round_number, result.changed, nodes, len(graph.nodes), seconds, error)
            )
            any_changed |= result.changed
            if result.changed:
                logger.debug("round %d: %s: %d -> %d nodes", round_number, pass_.name, nodes, len(graph.nodes))
        if not any_changed:
            break
    return graph, records
