"""Passes with a check of each: the graphs before and after it must have the same results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lite_core import ops
from lite_core.errors import PassError
from lite_core.ir import DType, Graph
from lite_core.passes import Inspect, Pass, PassRecord, default_passes, run_passes
from lite_tools.checking.comparison import compare_graphs

__all__ = ["optimize_checked", "pass_checker", "run_passes_checked"]


def optimize_checked(
    graph: Graph, *, extra: Iterable[Pass] = (), seed: int = 0, tolerance: float = 1e-4
) -> tuple[Graph, list[PassRecord]]:
    """Run the default passes on a copy of a graph, like :func:`lite_core.passes.optimize`, and check each.

    Args:
        graph: the graph, which is not changed.
        extra: passes that run after the default passes, such as the passes of plugins.
        seed: the seed of the random input.
        tolerance: the largest allowed difference, see :func:`pass_checker`.

    Returns:
        The new graph and one record for each pass run; ``error`` is the measured difference.

    Raises:
        PassError: a pass failed, changed the result or broke the graph; the message names the pass.
    """
    return run_passes_checked(graph, [*default_passes(), *extra], seed=seed, tolerance=tolerance)


def run_passes_checked(
    graph: Graph, passes: Sequence[Pass], *, seed: int = 0, tolerance: float = 1e-4
) -> tuple[Graph, list[PassRecord]]:
    """Run passes on a copy of a graph, like :func:`lite_core.passes.run_passes`, and check each.

    Arguments, return value and exceptions are those of :func:`optimize_checked`.
    """
    return run_passes(graph, passes, inspect=pass_checker(seed=seed, tolerance=tolerance))


def pass_checker(*, seed: int = 0, tolerance: float = 1e-4) -> Inspect:
    """Return a function for ``inspect=`` of :func:`lite_core.passes.run_passes` that checks each changing pass.

    It verifies the structure of the graph, and runs the graphs before and after the pass on the same random input.

    Args:
        seed: the seed of the random input.
        tolerance: the largest allowed difference, as a share of each output's range. It is multiplied by 100 for
            graphs with float16 values, and by 800 for graphs with bfloat16.
    """

    def check(name: str, before: Graph, after: Graph) -> float:
        ops.verify_result(after, f"pass {name!r} left", PassError)
        try:
            error = compare_graphs(before, after, seed)
        except PassError as problem:
            raise PassError(f"pass {name!r} broke graph {after.name!r}: {problem}") from problem
        allowed = tolerance * _rounding_factor(before)
        if not error <= allowed:
            raise PassError(
                f"pass {name!r} changed the result of graph {after.name!r}: the largest difference is "
                f"{error:.3g} of an output's range, allowed is {allowed:.3g}; disable the pass and report it"
            )
        return error

    return check


def _rounding_factor(graph: Graph) -> float:
    """Return the factor of the tolerance for the coarsest element type of the graph, relative to float32.

    A pass changes which intermediate values are rounded: an error of a few roundings is expected.
    """
    dtypes = {value.dtype for scope in graph.walk() for value in scope.defined()}
    return 800.0 if DType.BFLOAT16 in dtypes else 100.0 if DType.FLOAT16 in dtypes else 1.0
