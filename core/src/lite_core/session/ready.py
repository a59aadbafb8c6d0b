"""Making a graph ready to run: verification, passes, type inference."""

from __future__ import annotations

from typing import Any, NamedTuple

from lite_core.errors import GraphError, PassError
from lite_core.ir import Graph, TensorType
from lite_core.plugins import PluginManager, PluginRecord, default_plugins
from lite_core.plugins.contracts import fault_text
from lite_core.storage import cache_folder

__all__ = ["ReadyGraph", "make_ready"]


class ReadyGraph(NamedTuple):
    """A graph in the form that sessions run.

    Attributes:
        graph: verified and rewritten, with inferred types and with constants aligned as the backend contract requires.
        changed_by: names of the passes that changed the graph, those of plugins with their packages, ordered by their
            first change.
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
        PassError: a pass of Lite failed. A pass of a plugin that fails is recorded and left out.
    """
    from lite_core import ops, passes  # not at the top: prepared plans need neither
    from lite_core.ops.infer import KnownInference, infer_graph

    ops.verify(graph)
    callers, graph = (list(graph.every_constant()), graph.copy()) if copy else ([], graph)
    known = KnownInference.taken_from(graph)
    changed_by: tuple[str, ...] = ()
    if run_passes:
        plugins = plugins or default_plugins()
        extra = [_PluginPass(plugins, record, pass_) for record, pass_ in plugins.ask("lite_passes")]
        graph, records = passes.optimize(graph, extra=extra, known=known, copy=False)
        changed_by = tuple(dict.fromkeys(record.name for record in records if record.changed))
    infer_graph(graph, known=known)
    # After the passes: by then most weights are new arrays. An optimized graph has the arrays of its file.
    graph.align_constants(cache_folder("weights") if run_passes else None, callers)
    return ReadyGraph(graph, changed_by)


class _PluginPass:
    """A pass of a plugin, which rewrites a copy. If the result is not valid, the pass is recorded and left out."""

    def __init__(self, plugins: PluginManager, record: PluginRecord, pass_: Any) -> None:
        self.name = f"{pass_.name} ({record.distribution} {record.version})".replace(" -)", ")")
        self._plugins, self._record, self._pass = plugins, record, pass_

    def __call__(self, graph: Graph) -> Any:
        from lite_core.ops.infer import infer_graph
        from lite_core.passes.base import PassResult, apply

        try:
            result = apply(self._pass, _protected_copy(graph))
            if result.changed:
                infer_graph(result.graph)
                before, after = _interface(graph), _interface(result.graph)
                if len(before) != len(after) or not all(map(_agree, before, after)):
                    raise GraphError(f"it changed the inputs and outputs from {before} to {after}")
                return result
        except BaseException as error:
            problem = str(error) if isinstance(error, PassError) else f"pass {self._pass.name!r}: {fault_text(error)}"
            self._plugins.reject(self._record, "lite_passes", problem, self._pass, error)
        return PassResult(graph, changed=False)


def _protected_copy(graph: Graph) -> Graph:
    """Return a copy with constants that cannot be written, because they share memory with those of the graph."""
    copy = graph.copy()
    for scope in copy.walk():
        for value, array in scope.constants.items():
            scope.constants[value] = array.view()
            scope.constants[value].flags.writeable = False
    return copy


def _interface(graph: Graph) -> list[tuple[str, TensorType]]:
    return [(value.name, value.type) for value in (*graph.inputs, *graph.outputs)]


def _agree(before: tuple[str, TensorType], after: tuple[str, TensorType]) -> bool:
    """Return True if an input or output is the same. A pass may find out a size, or forget it."""
    (name, old), (new_name, new) = before, after
    return name == new_name and old.dtype == new.dtype and (old.accepts(new.shape) or new.accepts(old.shape))
