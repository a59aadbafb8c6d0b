"""Making a graph ready to run: checked, rewritten by the passes, its types inferred."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins

__all__ = ["ReadyGraph", "make_ready"]


class ReadyGraph(NamedTuple):
    """A graph as sessions run it.

    Attributes:
        graph: verified and rewritten; every type is inferred, and constants are aligned as backends are promised.
        changed_by: names of the passes that changed something, in the order in which they first did.
    """

    graph: Graph
    changed_by: tuple[str, ...]


def make_ready(
    graph: Graph, plugins: PluginManager | None = None, *, run_passes: bool = True, copy: bool = True
) -> ReadyGraph:
    """Make a graph ready to run; sessions, conversion and the commands that show what runs do it this way.

    Args:
        graph: not changed, unless ``copy`` says otherwise.
        plugins: those whose passes run after Lite's own; the process's by default.
        run_passes: False leaves the passes out, for a graph that they have seen.
        copy: False edits the graph itself, which spares inferring again what was inferred when it was built.

    Raises:
        GraphError: the graph is not valid.
        PassError: a pass failed.
    """
    from lite_core import ops, passes  # not at the top: what a model file has prepared needs neither
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
    graph.align_constants()  # after the passes: most weights are new arrays by then and need no copy
    return ReadyGraph(graph, changed_by)
