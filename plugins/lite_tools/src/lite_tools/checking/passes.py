"""Running passes with a check of each: the graph before and after it has the same results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lite_core import ops
from lite_core.errors import GraphError, PassError
from lite_core.ir import DType, Graph
from lite_core.passes import Inspect, Pass, PassRecord, default_passes, run_passes
from lite_tools.checking.comparison import compare_graphs

__all__ = ["optimize_checked", "pass_checker", "run_passes_checked"]


def optimize_checked(
    graph: Graph, *, extra: Iterable[Pass] = (), seed: int = 0, tolerance: float = 1e-4
) -> tuple[Graph, list[PassRecord]]:
    """Run the default passes on a copy of a graph, as :func:`lite_core.passes.optimize`, and check each.

    Args:
        graph: not changed.
        extra: passes that run after the default ones (those of plugins).
        seed: of the random input.
        tolerance: the largest difference allowed, see :func:`pass_checker`.

    Returns:
        The new graph and one record for each pass run; ``error`` is the difference that was found.

    Raises:
        PassError: a pass failed, changed the result or broke the graph; names the pass.
    """
    return run_passes_checked(graph, [*default_passes(), *extra], seed=seed, tolerance=tolerance)


def run_passes_checked(
    graph: Graph, passes: Sequence[Pass], *, seed: int = 0, tolerance: float = 1e-4
) -> tuple[Graph, list[PassRecord]]:
    """Run passes on a copy of a graph, as :func:`lite_core.passes.run_passes`, and check each.

    Args, what is returned and what is raised are as for :func:`optimize_checked`.
    """
    return run_passes(graph, passes, inspect=pass_checker(seed=seed, tolerance=tolerance))


def pass_checker(*, seed: int = 0, tolerance: float = 1e-4) -> Inspect:
    """What ``inspect=`` of :func:`lite_core.passes.run_passes` takes, to check each pass that changed something.

    The structure of the graph is verified, and the graphs before and after run on the same random input.

    Args:
        seed: of the random input.
        tolerance: the largest difference allowed, as a share of each output's range; 100 times that for graphs with
            float16 values and 800 times with bfloat16.
    """

    def check(name: str, before: Graph, after: Graph) -> float:
        try:
            ops.verify(after)
        except GraphError as problem:
            raise PassError(f"pass {name!r} left a graph that is not valid: {problem}") from problem
        try:
            error = compare_graphs(before, after, seed)
        except PassError as problem:
            raise PassError(f"pass {name!r} broke graph {after.name!r}: {problem}") from problem
        allowed = tolerance * _rounding_factor(before)
        if not error <= allowed:
            raise PassError(
                f"pass {name!r} changed the result of graph {after.name!r}: the largest difference is "
                f"{error:.3g} of an output's range, allowed is {allowed:.3g}; leave the pass out and report it"
            )
        return error

    return check


def _rounding_factor(graph: Graph) -> float:
    """How much coarser than float32's the tolerance is, by the coarsest element type of the graph.

    A pass moves the places where values are rounded, so an error of a few roundings is to be expected.
    """
    dtypes = {value.dtype for scope in graph.walk() for value in scope.defined()}
    return 800.0 if DType.BFLOAT16 in dtypes else 100.0 if DType.FLOAT16 in dtypes else 1.0
