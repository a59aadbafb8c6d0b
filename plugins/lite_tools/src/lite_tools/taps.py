"""Taps: values inside a model that runs return, or hand to functions, beside outputs that stay as they are.

::

    session = lite.load("model.onnx", taps=["conv_3", "before:softmax*"])      # run() returns these values, too
    session = lite.load("model.onnx", taps={"conv_*": print_tap})              # a line for each on standard error
    session.run(inputs, outputs=["relu_7"])                                    # returns only this value

A pattern names values, or nodes and thereby all their results; a node also has its name in the model that was read,
and ``op:Conv`` names all nodes of an operator.
``before:`` precedes a pattern of nodes whose inputs are meant, except for constants. Kernels, fusion, precision and
outputs are those of a run without taps. A value that exists only inside a kernel, because the backend fused nodes, is
computed in addition: its nodes run one by one on the same device, from what the run left in memory.
:attr:`lite_core.Session.notes` names such values. The first run that meets some is repeated, to read what they are
computed from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from lite_core.checks import require
from lite_core.container import ModelFile
from lite_core.ir import Graph, Node
from lite_core.observing import Observed, Observer
from lite_core.ops.infer import infer_graph
from lite_core.schedule import Plan, cut
from lite_core.schedule.placement import unknown_name
from lite_core.schedule.plan_cache import PlanCache, Signature
from lite_core.schedule.planner import Planner
from lite_core.session.session import STORED_TAPS, Taps
from lite_tools.apart import plan_apart

__all__ = ["Tap", "TappedRuns", "matches_node", "names_of", "print_tap", "tapped_runs"]

Array = np.ndarray[Any, Any]
#: Runs a plan with an observer, and returns the outputs of the model by name.
RunObserved = Callable[[Observer], dict[str, Array]]

_FIRST_NUMBERS, _MOST_NAMED, _MOST_PLANS = 4, 8, 16


class Tap(NamedTuple):
    """A value of one run; ``str`` is one line with its node and kernel, type, range, mean, NaN, Inf and first numbers.

    Attributes:
        value: its name.
        array: its elements; the receiver owns them.
        node: name of the node that computes it; empty for an input of the model, as are the following.
        op: the node's operator.
        kernel: the kernel that computed it.
        device: label of the kernel's device.
    """

    value: str
    array: Array
    node: str = ""
    op: str = ""
    kernel: str = ""
    device: str = ""

    def __str__(self) -> str:
        numbers = self.array.reshape(-1).astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        facts = f"min {finite.min():.6g} max {finite.max():.6g} mean {finite.mean():.6g} " if finite.size else ""
        facts += f"NaN {np.isnan(numbers).sum()} Inf {np.isinf(numbers).sum()}"
        first = " ".join([f"{n:.6g}" for n in numbers[:_FIRST_NUMBERS]] + ["..."] * (numbers.size > _FIRST_NUMBERS))
        place = f" ({self.op} {self.node}, kernel {self.kernel} on {self.device})" if self.node else ""
        return f"{self.value}{place}: {self.array.dtype}{[*self.array.shape]} {facts} [{first}]"


def print_tap(tap: Tap) -> None:
    """Print one line about a value on standard error."""
    print(f"tap {tap}", file=sys.stderr)


def tapped_runs(
    graph: Graph, taps: Taps | None, planner: Planner, notes: list[str], file: ModelFile | None
) -> TappedRuns:
    """Return the runs of a session that hand over values; by default those that its file names are printed."""
    if taps is None:
        stored = "" if file is None else file.metadata[STORED_TAPS]
        taps = dict.fromkeys(stored.split("\n"), print_tap)
        notes.append(f"every run prints the values that the model's taps name: {', '.join(taps)}")
    return TappedRuns(graph, taps, planner, notes, file)


class TappedRuns:
    """The runs of one session that hand over values. Thread-safe.

    Args:
        graph: the session's graph.
        taps: ``taps`` of :func:`lite_core.load`.
        planner: the session's planner.
        notes: receives a line about values that are computed separately.
        file: the file of the model, if it is a .lite file.

    Raises:
        InputError: a pattern names nothing in the graph, or ``taps`` is of another kind.
    """

    def __init__(self, graph: Graph, taps: Taps, planner: Planner, notes: list[str], file: ModelFile | None) -> None:
        self._planner, self._notes, self._file = planner, notes, file
        self._nodes = [node for scope in graph.walk() for node in scope.nodes]
        self._makers = {value.name: node for node in self._nodes for value in node.outputs if value is not None}
        self._inner = {*self._makers} - {value.name for value in graph.defined()}
        first, last = [v.name for v in graph.inputs], [v.name for v in graph.outputs]
        self._names = [*dict.fromkeys([*first, *self._makers, *last])]
        functions = taps.values() if isinstance(taps, Mapping) else [None]
        fits = _has_names(taps) and all(function is None or callable(function) for function in functions)
        require(fits, "taps", "a list of names and patterns, or a mapping of these to functions", taps)
        given = taps if isinstance(taps, Mapping) else dict.fromkeys(taps)
        self._taps = [(self._find([pattern], "taps"), receive) for pattern, receive in given.items()]
        self._plans: WeakKeyDictionary[Plan, _PlanParts] = WeakKeyDictionary()

    def run(
        self, plan: Plan, inputs: Sequence[Array], outputs: Sequence[str] | None, run: RunObserved
    ) -> dict[str, Any]:
        """Run a plan, and hand over values.

        Args:
            plan: the plan.
            inputs: its inputs.
            outputs: patterns of the values to return; by default the outputs of the model and the tapped values.
            run: runs the plan.
        """
        returned = [name for names, receive in self._taps if receive is None for name in names]
        returned = returned if outputs is None else self._find(outputs, "outputs")
        parts = self._plans.get(plan) or _PlanParts(plan, self._planner, self._file)
        self._plans[plan] = parts
        called = [(names, receive) for names, receive in self._taps if receive is not None]
        wanted = {*returned}.union(*(names for names, _ in called))
        results, found = parts.run(inputs, wanted, run)
        if hidden := [name for name in self._names if name in wanted & parts.hidden]:
            more = f" and {len(hidden) - _MOST_NAMED} more" if len(hidden) > _MOST_NAMED else ""
            named = ", ".join(hidden[:_MOST_NAMED]) + more
            note = f"taps: values that exist only inside kernels were computed separately, node by node: {named}"
            self._notes += [note] if note not in self._notes else []
        for name in self._names if called else ():
            node = self._makers.get(name)
            for tap in found.get(name, ()):
                for receive in {id(receive): receive for names, receive in called if name in names}.values():
                    receive(tap if node is None else tap._replace(node=node.name, op=node.qualified_op))
        # Branches that the input shapes decide are simplified, so that some values no longer exist.
        arrays = {name: [tap.array for tap in found.get(name, ())] for name in returned}
        given = {name: a if name in self._inner else a[-1] for name, a in arrays.items() if a or name in self._inner}
        return given if outputs is not None else {**results, **given}

    def _find(self, patterns: Sequence[str], argument: str) -> list[str]:
        require(_has_names(patterns), argument, "a list of names and patterns", patterns)
        found: dict[str, None] = {}
        for pattern in patterns:
            bare = pattern.removeprefix("before:")
            nodes = [node for node in self._nodes if matches_node(bare, node)]
            names = [name for name in self._names if bare == pattern and _matches(bare, name)]
            ends = [value for node in nodes for value in (node.outputs if bare == pattern else node.inputs)]
            names += [value.name for value in ends if value is not None and value.name in self._names]
            if not names:
                problem = f"{argument} names {pattern!r}, but no value or node of the optimized graph has"
                names = [*self._names, *(name for node in self._nodes for name in names_of(node))]
                raise unknown_name(problem, bare, [*dict.fromkeys(names)])
            found.update(dict.fromkeys(names))
        return [*found]


def _has_names(given: object) -> bool:
    return isinstance(given, (Mapping, Sequence)) and not isinstance(given, str) and {type(n) for n in given} <= {str}


def names_of(node: Node) -> tuple[str, ...]:
    """Return the name of a node, and its name in the model that was read."""
    return (node.name, node.origin.name) if node.origin else (node.name,)


def matches_node(pattern: str, node: Node) -> bool:
    """Return True if a pattern names a node, its name in the model that was read, or, after ``op:``, its operator."""
    if pattern.startswith("op:"):
        return _matches(pattern.removeprefix("op:"), node.qualified_op)
    return any(_matches(pattern, name) for name in names_of(node))


def _matches(pattern: str, name: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


class _Collector:
    """An observer that keeps some values, and remembers which there were."""

    def __init__(self, wanted: set[str], how: str = "") -> None:
        self._wanted, self._how = wanted, how
        self.found: dict[str, list[Tap]] = {}
        self.names: set[str] = set()

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        """Ignore it: only results matter."""

    def computed(self, results: Observed) -> None:
        """Keep the wanted results."""
        self.names.update(results.values)
        for name in self._wanted.intersection(results.values):
            tap = Tap(name, results.read(name), kernel=results.kernel + self._how, device=results.device)
            self.found.setdefault(name, []).append(tap)


class _PlanParts:
    """The values of a plan that are not in memory during its runs, and the parts of its graph that compute them."""

    def __init__(self, plan: Plan, planner: Planner, file: ModelFile | None) -> None:
        self._graph, self._placement = plan.graph, plan.placement
        self._planner, self._file = planner, file
        #: Names of the values that were missing in at least one run.
        self.hidden: set[str] = set()
        #: The position of the node that computes a value; for a value in a sub-graph, of the node that holds that.
        self._makers: dict[str, int] = {}
        for index, node in enumerate(plan.graph.nodes):
            inner = [n for graph in node.subgraphs for scope in graph.walk() for n in scope.nodes]
            self._makers.update((v.name, index) for n in (node, *inner) for v in n.outputs if v is not None)
        self._plans: dict[tuple[int, ...], PlanCache[Plan]] = {}

    def run(
        self, inputs: Sequence[Array], wanted: set[str], run: RunObserved
    ) -> tuple[dict[str, Array], dict[str, list[Tap]]]:
        """Run the plan; return its outputs, and each wanted value as often as it was computed.

        A run that lacks a value which no run lacked before is repeated, to read what the value is computed from.
        """
        given = {value.name: array for value, array in zip(self._graph.inputs, inputs)}
        while True:
            hidden = wanted & self.hidden
            part = self._part(hidden)
            sources = [value.name for value in self._cut(part).inputs]
            read = {*sources, *wanted}
            seen = _Collector(read - self.hidden)
            outputs = run(seen)
            missing = self._makers.keys() - seen.names - outputs.keys() - self.hidden
            if not missing & read:
                break
            self.hidden |= missing
        known = {name: [Tap(name, a.copy() if name in wanted else a)] for name, a in given.items()} | seen.found
        known.update((name, [Tap(name, a)]) for name, a in outputs.items() if name not in known)
        if part:
            arrays = [known[name][-1].array for name in sources]
            cache = self._plans.setdefault(part, PlanCache(_MOST_PLANS))
            plan = cache.get(tuple([array.shape for array in arrays]), partial(self._plan_of, part))
            apart = _Collector(hidden, ", run separately")
            plan.run(arrays, observer=apart)
            known.update(apart.found)
        return outputs, known

    def _part(self, names: set[str]) -> tuple[int, ...]:
        """Return the positions of the nodes that compute values from others that are in memory."""
        chosen, more = set(), {self._makers[name] for name in names}
        while more:
            chosen |= more
            used = [value.name for index in more for value in self._graph.nodes[index].used()]
            more = {self._makers[name] for name in used if name in self.hidden} - chosen
        return tuple(sorted(chosen))

    def _cut(self, part: Sequence[int]) -> Graph:
        graph = cut(self._graph, f"{self._graph.name}, taps", [self._graph.nodes[index] for index in part])
        graph.outputs = [value for node in graph.nodes for value in node.outputs if value is not None]
        return graph

    def _plan_of(self, part: Sequence[int], signature: Signature) -> Plan:
        graph = self._cut(part).copy()
        if self._file is not None:
            self._file.verify_constants(graph.every_constant())
        infer_graph(graph, {v.name: v.type.with_shape(shape) for v, shape in zip(graph.inputs, signature)})
        return plan_apart(self._planner, graph, self._placement, part)
