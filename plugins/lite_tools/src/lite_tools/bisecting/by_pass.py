"""Bisection by graph pass: which application of which pass changes the outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lite_core.errors import InputError, LiteError
from lite_core.ir import Graph, Node
from lite_core.ops.infer import infer_graph
from lite_core.passes import Pass, PassResult, default_passes, run_passes
from lite_core.passes.base import apply
from lite_core.plugins import PluginManager
from lite_tools.bisecting.criteria import GOOD, SKIPPED, Criterion, Judgement
from lite_tools.bisecting.findings import FOUND, NOTHING, UNSTEADY, Culprit, Findings
from lite_tools.bisecting.search import shortest_prefix
from lite_tools.bisecting.trials import Outputs, Trials

__all__ = ["Application", "applications", "bisect_passes"]

#: Loads a graph, which is run as it is, and returns the outputs.
Run = Callable[[Graph], Outputs]

_MOST_LISTED = 8


@dataclass(frozen=True)
class Application:
    """One application of a pass that changed the graph.

    Attributes:
        name: the pass.
        number: 1 for the first application of this pass that changed the graph.
        package: the distribution of the pass.
        changes: the nodes that it removed, added and changed, as texts.
        after: the graph after it.
    """

    name: str
    number: int
    package: str
    changes: tuple[str, ...]
    after: Graph


def applications(graph: Graph, plugins: PluginManager, without: str = "") -> list[Application]:
    """Run the passes of Lite and of plugins on a copy of a graph; return each application that changed it, in order.

    Args:
        graph: the graph as it was read.
        plugins: the plugins whose passes run after Lite's.
        without: the name of a pass to leave out.
    """
    packages: dict[str, str] = {}
    passes: list[Pass] = list(default_passes())
    for record, pass_ in plugins.ask("lite_passes"):
        packages[pass_.name] = record.distribution or record.label
        passes.append(_Guarded(pass_))
    found: list[Application] = []
    counts: Counter[str] = Counter()

    def inspect(name: str, before: Graph, after: Graph) -> float:
        counts[name] += 1
        changes = _changes(before, after)
        found.append(Application(name, counts[name], packages.get(name, "lite-core"), changes, after.copy()))
        return 0.0

    run_passes(graph, [each for each in passes if each.name != without], inspect=inspect)
    return found


def bisect_passes(
    graph: Graph,
    plugins: PluginManager,
    run_a: Run,
    run_b: Run,
    criterion_of: Callable[[Outputs], Criterion],
    trials_of: Callable[[Criterion], Trials],
) -> Findings:
    """Find the first application of a pass after which the outputs are wrong.

    Args:
        graph: the graph as it was read.
        plugins: the plugins whose passes run after Lite's.
        run_a: runs the graph without passes, for the expected outputs.
        run_b: runs the graphs after each pass.
        criterion_of: makes the criterion from the expected outputs.
        trials_of: makes the trials.

    Raises:
        InputError: the passes do not change the graph, or the outputs are wrong without them, too.
        LiteError: the graph without passes cannot run.
    """
    applied = applications(graph, plugins)
    if not applied:
        raise InputError(
            "no pass changes this model, so there is nothing to bisect by pass (a .lite file contains the result of "
            "the passes: name the model that it was made from)"
        )
    graphs = [graph, *(each.after for each in applied)]
    criterion = criterion_of(run_a(graph))
    trials = trials_of(criterion)
    trials.starts("a, without passes")
    before = trials.judged_now("without passes", lambda: run_b(graph))
    if before.verdict != GOOD:
        raise InputError(
            f"the outputs are wrong without passes, too ({before.reason}): another part is at fault, or two runs "
            "differ; try --by node"
        )
    whole = trials.judged_now("all passes", lambda: run_b(graphs[-1]))
    again = trials.judged_now("all passes again", lambda: run_b(graphs[-1]))
    findings = Findings("pass", NOTHING, criterion.text, len(applied), whole)
    if whole.verdict != again.verdict:
        note = f"two runs with all passes were judged differently: {whole.verdict}, then {again.verdict}"
        return replace(findings, verdict=UNSTEADY, runs=trials.runs, notes=(f"{note} ({again.reason})",))
    if whole.verdict == GOOD:
        return replace(findings, runs=trials.runs)
    if whole.verdict == SKIPPED:
        raise InputError(f"the check cannot judge the outputs with all passes ({whole.reason})")
    trials.knows_whole(whole)

    def judged(count: int) -> Judgement:
        what = f"after {count} of {len(applied)} changes by passes"
        return trials.judged(f"pass {count}", what, lambda: run_b(graphs[count]))

    def ask(count: int) -> bool | None:
        verdict = judged(count).verdict
        return verdict == whole.verdict if verdict in (GOOD, whole.verdict) else None

    def left(questions: int) -> None:
        trials.left = questions + 2

    low, high = shortest_prefix(0, len(applied), ask, left)
    trials.left = None
    guilty = applied[low:high]
    alone = trials.judged_now(f"after {high} changes again", lambda: run_b(graphs[high]))
    if alone.verdict != whole.verdict:
        note = f"the graph after {guilty[-1].name} was judged differently when it ran again: {alone.verdict}"
        findings = replace(findings, verdict=UNSTEADY, notes=(f"{note} ({alone.reason})",))
    else:
        culprits = tuple(Culprit(each.name, details=_details(each)) for each in guilty)
        findings = replace(findings, verdict=FOUND, culprits=culprits, alone=alone)
        rest = applications(graph, plugins, without=guilty[-1].name)
        last = rest[-1].after if rest else graph
        others = trials.judged_now(f"all passes but {guilty[-1].name}", lambda: run_b(last))
        findings = replace(findings, others=others)
    return replace(findings, runs=trials.runs, reused=trials.reused)


class _Guarded:
    """A pass of a plugin, which rewrites a copy. One that fails leaves the graph as it is, as in a session."""

    def __init__(self, pass_: Pass) -> None:
        self.name = pass_.name
        self._pass = pass_

    def __call__(self, graph: Graph) -> PassResult:
        try:
            result = apply(self._pass, graph.copy())
            if result.changed:
                infer_graph(result.graph)
                return result
        except LiteError:
            pass
        return PassResult(graph, changed=False)


def _details(application: Application) -> tuple[str, ...]:
    changes = application.changes
    more = [f"and {len(changes) - _MOST_LISTED} more"] if len(changes) > _MOST_LISTED else []
    number = f"change number {application.number} by this pass"
    return (f"of {application.package}", number, *changes[:_MOST_LISTED], *more)


def _changes(before: Graph, after: Graph) -> tuple[str, ...]:
    """Return the nodes that a pass removed, added and changed, as texts."""
    old, new = _nodes(before), _nodes(after)
    lines = [f"removed {name} ({old[name][0]})" for name in old if name not in new]
    lines += [f"added {name} ({new[name][0]})" for name in new if name not in old]
    lines += [f"changed {name} ({new[name][0]})" for name in new if name in old and old[name] != new[name]]
    return tuple(lines)


def _nodes(graph: Graph) -> Mapping[str, Sequence[Any]]:
    """Return what identifies each node, by name."""
    return {node.name: _identity(node, scope) for scope in graph.walk() for node in scope.nodes}


def _identity(node: Node, scope: Graph) -> Sequence[Any]:
    attributes = {name: a for name, a in node.attributes.items() if not isinstance(a, Graph)}
    # Constants by identity: a pass that changes one makes a new array.
    inputs = [v and (id(scope.constants[v]) if v in scope.constants else v.name) for v in node.inputs]
    return node.qualified_op, str(attributes), inputs
