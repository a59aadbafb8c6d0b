"""Cures for what `lite check` finds: backends are asked who runs a node, also with other types and known sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from lite_core.backend import Unavailable, Yes
from lite_core.errors import LiteError, OperatorProblem
from lite_core.ir import DType, Graph, Node, Value
from lite_core.ops.missing import plugin_name
from lite_core.plugins import PluginManager, available_backends, backend_sources
from lite_core.plugins.known import known_distributions
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_core.schedule.probing import probe
from lite_tools.commands.example_shapes import example_shapes, shape_words
from lite_tools.conversion.typed import typed_graph

__all__ = ["ALLOW_FALLBACK", "NodeCures", "command_of_cures", "cure_of_problem"]

#: The option with which `lite convert` lets other targets and host run nodes that a target refuses.
ALLOW_FALLBACK = "--allow-fallback"
_COMMAND = re.compile(
    r"pip install (--upgrade )?[\w.=\[\]-]+( [\w.=\[\]-]+)*|lite plugins [\w.-]+|lite new-plugin [\w,-]+ [a-z]\w*"
)
_PAGE = "page docs/plugin-operator.md"
_WRITE_KERNEL = "or write a kernel: lite new-plugin kernel-backend my_backend (page docs/writing-a-plugin.md)"
_FAILED_INFERENCE = re.compile(r"the inference of \S+, in the module \S+ of (\S+) \S+, failed with")
#: What helps against the reasons for which readers refuse operators; the first pattern that is found decides.
_BY_REASON = (
    (
        r"not known before the model runs|no fixed size|unknown size|is computed|not a parameter|size(s)? .* unknown|"
        r"number of .* must be known|unknown ranks?",
        "export the model with fixed input sizes, and let the exporter fold constants, so that it is known",
    ),
    (r"not enough memory", "free memory, or export the model with smaller sizes"),
    (
        r"element type|complex numbers|\bfloat(8|16|64)|\b(u?int|bool)\d*\b|is of the kind",
        "export the model with these values in float32, or in int64 for indices",
    ),
    (r"opset|newer than|version", "export the model for an older opset, or: pip install --upgrade lite-core"),
    (
        r"missing|damaged|does not (fit|exist)|do not fit|beyond|out of range|not one of|calls itself|must (be|have)|"
        r"elements for|, expected |has no nodes|cycles|names a node|is empty|takes \d+ inputs",
        "the model breaks this operator's specification: export it again, with a newer version of the exporter",
    ),
)


def cure_of_problem(problem: OperatorProblem) -> str:
    """Return what to do about an operator that cannot be lowered: the reader's own remedy, or a general one."""
    own = plugin_name(problem.op)
    if problem.remedy.startswith("did you mean"):
        return f"{problem.remedy} Export the model with this name"
    if problem.remedy:
        return problem.remedy
    if "no lowering" in problem.reason or "no operator" in problem.reason:
        return (
            "export the model with other operators (another opset, or without the exporter's own fusions), or write "
            f"the operator: lite new-plugin operator {own} ({_PAGE})"
        )
    if failed := _FAILED_INFERENCE.search(problem.reason):
        package = failed[1]
        return f"a bug of the operator: report it to the authors of {package}, with what `lite plugins {package}` shows"
    found = next((cure for pattern, cure in _BY_REASON if re.search(pattern, problem.reason)), "")
    return found or (
        "export the model in a form without this: another opset, or without the exporter's own fusions; or replace the "
        f"operator by one of a plugin: lite new-plugin operator {own} ({_PAGE})"
    )


def command_of_cures(cures: Iterable[str]) -> str:
    """Return the first command that cures name; without one, that which lists all operators."""
    found = (match[0].rstrip(" .") for cure in cures if (match := _COMMAND.search(cure)))
    return next(found, "lite ops")


class NodeCures:
    """Cures for nodes that a backend refuses.

    Args:
        graph: the graph as a session would run it; its nodes are asked about.
        plugins: the plugins that provide backends.
    """

    def __init__(self, graph: Graph, plugins: PluginManager) -> None:
        self._plugins = plugins
        self._graph = graph
        self._nodes = _nodes(graph)

    def others(self, node: str, refusing: Sequence[str]) -> list[str]:
        """Return the backends beside those that refuse a node, and beside host, that run it on this machine."""
        return [
            name
            for name, candidate in self._candidates.items()
            if name not in (*refusing, "host") and isinstance(ask(candidate, self._nodes[node]), Yes)
        ]

    def of(self, node: str, refusing: Sequence[str | Candidate], *, runs_on: str = "", host: str = "") -> str:
        """Return what helps against refusals, the best first; never empty.

        Args:
            node: the node's name.
            refusing: the backends that refuse it, or devices of them, such as those of other machines.
            runs_on: the backend that runs it instead; empty if none does.
            host: how host is allowed to run it, such as ``--allow-fallback``; empty if it is.
        """
        names = [each if isinstance(each, str) else each.device.backend for each in refusing]
        candidates = [self._candidates.get(each) if isinstance(each, str) else each for each in refusing]
        if node not in self._nodes:
            return _WRITE_KERNEL
        if any(each is not None and isinstance(ask(each, self._nodes[node]), Yes) for each in candidates):
            return "nothing: it could run there, but copies to it would take longer than they save"
        if runs_on not in ("", "host"):
            return f"nothing: {runs_on} runs it"
        cures = [cure for each in candidates if each is not None for cure in self._by_type_or_size(node, each)]
        if others := self.others(node, names):
            option = "--targets" if host == ALLOW_FALLBACK else "--backend"
            allowed = f" {host}" if host == ALLOW_FALLBACK else ""
            runs = "run" if len(others) > 1 else "runs"
            cures.append(f"{_listed(others)} {runs} it: {option} {','.join([*names, others[0]])}{allowed}")
        elif missing := self._not_installed:
            cures.append(f"packages that are not installed may run it: pip install {' or '.join(missing)}")
        if runs_on == "host":
            cures.append("host runs it, by its slow reference")
        elif not others:
            cures.append(f"host runs it, by its slow reference, with {host}" if host else "host runs it, slowly")
        if not others:
            cures.append(_WRITE_KERNEL)
        return "; ".join(cures)

    def _by_type_or_size(self, node: str, candidate: Candidate) -> list[str]:
        """Return the cures that change the model: other element types, or sizes that are known."""
        name, cures = candidate.device.backend, []
        if (sized := self._with_sizes.get(node)) and isinstance(ask(candidate, sized), Yes):
            words = " ".join(shape_words(self._examples))
            cures.append(f"{name} runs it when the sizes are known: sessions place it again then, as with {words}")
        if (plain := self._in_float32.get(node)) and isinstance(ask(candidate, plain), Yes):
            found = sorted({str(v.dtype) for v in _values(self._nodes[node]) if _is_other_float(v.dtype)})
            cures.append(
                f"{name} runs it in float32: export the model with {' and '.join(found)} as float32, or add a Cast"
            )
        return cures

    @cached_property
    def _candidates(self) -> dict[str, Candidate]:
        """The first device of each backend that is available here, the best backend first."""
        backends, sources = available_backends(self._plugins), backend_sources(self._plugins)
        found = {}
        for name, backend in backends.items():
            devices = Unavailable("it computes nothing") if name == "null" else probe(backend, sources.get(name, ""))
            if not isinstance(devices, Unavailable) and devices:
                found[name] = Candidate(backend, devices[0], source=sources.get(name, ""))
        return dict(sorted(found.items(), key=lambda item: -item[1].device.score))

    @cached_property
    def _not_installed(self) -> list[str]:
        installed = available_backends(self._plugins)
        packages = known_distributions("backends")
        return sorted({package for name, package in packages.items() if name not in installed})

    @cached_property
    def _examples(self) -> Mapping[str, Sequence[int]]:
        return example_shapes({v.name: v.type for v in self._graph.inputs if not v.type.is_static}, {})

    @cached_property
    def _with_sizes(self) -> dict[str, Node]:
        """The nodes with the types that follow from examples of input shapes; empty if nothing is open."""
        if all(value.type.is_static for value in self._graph.inputs):
            return {}
        shapes = example_shapes({v.name: v.type for v in self._graph.inputs}, {}, self._graph)
        try:
            return _nodes(typed_graph(self._graph, shapes))
        except LiteError:
            return {}

    @cached_property
    def _in_float32(self) -> dict[str, Node]:
        """The nodes that compute with other floating-point types, with float32 instead."""
        copy = self._graph.copy()
        changed = {n.name for n in _nodes(self._graph).values() if any(_is_other_float(v.dtype) for v in _values(n))}
        for scope in copy.walk():
            for value in scope.defined():
                if _is_other_float(value.dtype):
                    value.type = value.type.with_dtype(DType.FLOAT32)
        return {name: node for name, node in _nodes(copy).items() if name in changed}


def _listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _nodes(graph: Graph) -> dict[str, Node]:
    return {node.name: node for scope in graph.walk() for node in scope.nodes}


def _values(node: Node) -> list[Value]:
    return [value for value in (*node.used(), *node.outputs) if value is not None]


def _is_other_float(dtype: DType) -> bool:
    return dtype.is_floating and dtype is not DType.FLOAT32
