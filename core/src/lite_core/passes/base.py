"""The contract of graph passes, and running a sequence of them.

A pass is a callable object with a ``name``. It may edit its graph in place and returns ``PassResult(graph, changed)``.
It preserves the graph's inputs and outputs (names, order, types), its validity, and its results up to rounding. The
docstring of a pass lists its rules, numbered.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from lite_core import ops
from lite_core.errors import LiteError, PassError
from lite_core.ir import Graph
from lite_core.log import tracked

__all__ = ["Inspect", "Pass", "PassRecord", "PassResult", "apply", "run_passes"]

logger = logging.getLogger("lite.passes")

_MOST_ROUNDS = 8


class PassResult(NamedTuple):
    """The graph after a pass; ``changed`` is True if the pass changed anything."""

    graph: Graph
    changed: bool


@runtime_checkable
class Pass(Protocol):
    """A graph rewrite that helps every backend."""

    name: str

    def __call__(self, graph: Graph) -> PassResult: ...


class PassRecord(NamedTuple):
    """A record of one run of a pass, for tables and logs."""

    name: str
    round: int
    changed: bool
    nodes_before: int
    nodes_after: int
    seconds: float
    #: The result of ``inspect``, or None if it was not called.
    error: float | None = None


#: Compares the results of a graph before and after a pass, given the pass's name and both graphs. Returns the measured
#: error, or raises PassError if the error is too large.
Inspect = Callable[[str, Graph, Graph], float]


def apply(pass_: Pass, graph: Graph) -> PassResult:
    """Run a pass once. Raises PassError, which names the pass, if it fails or leaves an invalid graph."""
    try:
        result = pass_(graph)
    except (LiteError, KeyboardInterrupt):
        raise
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
        raise PassError(f"pass {pass_.name!r} failed on graph {graph.name!r} with {fault}") from error
    if not isinstance(result, PassResult):
        raise PassError(f"pass {pass_.name!r} returned {type(result).__name__}, not a PassResult")
    if result.changed and not type(pass_).__module__.startswith("lite_core."):
        ops.verify_result(result.graph, f"pass {pass_.name!r} left", PassError)
    return result


def run_passes(
    graph: Graph, passes: Sequence[Pass], *, inspect: Inspect | None = None, copy: bool = True
) -> tuple[Graph, list[PassRecord]]:
    """Run passes in order, repeatedly until none changes anything (at most 8 rounds).

    Args:
        graph: left unchanged unless ``copy`` is False.
        passes: the passes to run.
        inspect: called after each pass that changed the graph, for example to compare results.
        copy: False edits the graph itself.

    Returns:
        The resulting graph and one record for each pass run.

    Raises:
        PassError: a pass failed; names the pass.
    """
    if copy:
        graph = graph.copy()
    records: list[PassRecord] = []
    for number in range(1, _MOST_ROUNDS + 1):
        any_changed = False
        for pass_ in tracked(passes, f"running the passes on the graph, round {number}"):
            before = graph.copy() if inspect else graph
            nodes, start = len(graph.nodes), time.perf_counter()
            logger.debug("round %d: running %s", number, pass_.name)  # the last line if the pass never returns
            result = apply(pass_, graph)
            seconds = time.perf_counter() - start
            graph = result.graph
            error = inspect(pass_.name, before, graph) if result.changed and inspect else None
            records.append(PassRecord(pass_.name, number, result.changed, nodes, len(graph.nodes), seconds, error))
            any_changed |= result.changed
            if result.changed:
                logger.debug("round %d: %s: %d -> %d nodes", number, pass_.name, nodes, len(graph.nodes))
            if seconds > 1:
                logger.info("round %d: %s took %.1f s", number, pass_.name, seconds)
        if not any_changed:
            break
    else:
        names = ", ".join(dict.fromkeys(r.name for r in records if r.changed and r.round == _MOST_ROUNDS))
        logger.warning("graph %r: passes still change it after %d rounds: %s", graph.name, _MOST_ROUNDS, names)
    return graph, records
