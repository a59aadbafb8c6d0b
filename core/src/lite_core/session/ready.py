"""Making a graph ready to run: verification, passes, type inference."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins

__all__ = ["ReadyGraph", "make_ready"]


class ReadyGraph(NamedTuple):
    """A graph in the form that sessions run.

    Attributes:
        graph: verified and rewritten, with inferred types and with constants aligned as the backend contract requires.
        changed_by: names of the passes that changed the graph, ordered by their first change.
    """

    graph: Graph
    changed_by: tuple[str, ...]


def make_ready(
    graph: Graph, plugins: PluginManager | None = None, *, run_passes: bool = True, copy: bool = True
) -> ReadyGraph:
    """Make a graph ready to run: verify it, run the passes, infer types. Sessions and conversion share this function.

    Args:
        graph: left unchanged unless ``copy`` is False.
        plugins: the plugins whose passes run after Lite's; the process's plugins by default.
        run_passes: False skips the passes, for a graph that is already optimized.
        copy: False edits the graph itself, which reuses the types inferred when it was built.

    Raises:
        GraphError: the graph is not valid.
        PassError: a pass failed.
    """
    from lite_core import ops, passes  # not at the top: prepared plans need neither
    from lite_core.ops.infer import KnownInference, infer_graph

    ops.verify(graph)
    if copy:
        graph = graph.copy()
    known = KnownInference.taken_from(graph)
    changed_by: tuple[str, ...] = ()
    if run_passes:
        extra = [item for _, item in (plugins or default_plugins()).ask("lite_passes")]
        graph, records = passes.optimize(graph, extra=extra, known=known, copy=False)
        changed_by = tuple(dict.fromkeys(record.name for record in records if record.changed))
    infer_graph(graph, known=known)
    graph.align_constants()  # after the passes: by then most weights are new, aligned arrays
    return ReadyGraph(graph, changed_by)
