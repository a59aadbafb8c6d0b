"""Checks of the graph passes of a package, on the graphs of level 3 and on graphs that the package brings.

On each graph, the pass runs alone until it reports no change. After each round:

1. The graph is valid, and has the same inputs and outputs as before: names, order and types.
2. If the pass reports no change, there is none; if it reports a change, the graph is none of those before.
3. The outputs are those of the graph as it was written, within the tolerance of the graph.

Then the pass runs with Lite's own passes, as in a session: rules 1 and 3 hold, and the passes come to an end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.graphs import cases_of_graphs, dynamic, tables
from lite_conformance.cases.graphs.draft import Drafted, GraphCase
from lite_conformance.cases.graphs.running import failure_prefix
from lite_conformance.cases.op_runner import CaseBuildError
from lite_conformance.cases.plugins.brought import graph_tables, import_cases
from lite_conformance.cases.tensors import Array, short_name
from lite_conformance.judge.checks import Allowance, check_outcome
from lite_conformance.judge.outcome import Failure, Outcome, Skipped, merged
from lite_core import ops, passes
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph
from lite_core.passes import Pass
from lite_core.passes.base import apply

__all__ = ["check_pass", "graph_cases_of_packages", "pass_cases", "suite_graphs"]

#: A pass that still changes a graph after this many rounds does not come to an end.
_MAX_ROUNDS = 64
_MAX_SIGNATURES = 3


def suite_graphs() -> Iterator[tuple[str, GraphCase]]:
    """Yield the graphs of level 3 with their names."""
    for table in tables():
        yield from ((f"{short_name(case.dtype)},graph-{case.label}", case) for case in table)
    yield from ((f"{short_name(case.dtype)},graph-dynamic-{case.label}", case) for case in dynamic.graphs)


def graph_cases_of_packages(names: Sequence[str] | None = None) -> Iterator[Case]:
    """Yield cases that run the graphs of packages on a backend: ``graph[f32,acme-fuse,LABEL]``.

    Args:
        names: the passes whose graphs are meant; all when omitted.
    """
    import_cases()
    for name, table in sorted(graph_tables.items()):
        if names is None or name in names:
            yield from cases_of_graphs(table, f"{name},")


def pass_cases(pass_: Pass) -> Iterator[Case]:
    """Yield a case for each graph: ``pass[acme-fuse,f32,LABEL]``, ``pass[acme-fuse,f32,graph-conv-bn]``."""
    own = graph_tables.get(pass_.name, ())
    graphs = [*((f"{short_name(case.dtype)},{case.label}", case) for case in own), *suite_graphs()]
    yield Case(
        f"pass[{pass_.name},changes-something]", 3, "passes", partial(_changes_something, pass_=pass_, graphs=graphs)
    )
    for name, case in graphs:
        run = partial(_run, pass_=pass_, case=case)
        yield Case(f"pass[{pass_.name},{name}]", 3, "passes", run, case.op, case.dtype.value)


def _run(context: Context, pass_: Pass, case: GraphCase) -> Outcome:
    return check_pass(pass_, case, context.settings.seed)


def _changes_something(context: Context, pass_: Pass, graphs: Sequence[tuple[str, GraphCase]]) -> Outcome:
    """Require that the pass changes a graph: otherwise its other cases show little."""
    for name, case in graphs:
        if _applied(pass_, case.draft(context.settings.seed).graph).changed:
            return Outcome(note=f"it changes {name}")
    raise Skipped(
        f"pass {pass_.name!r} changes none of {len(graphs)} graphs, so that it is hardly tested: "
        f"bring a graph in a table, graph_table({pass_.name!r})"
    )


def check_pass(pass_: Pass, case: GraphCase, seed: int) -> Outcome:
    """Check a pass on a graph; see the rules above.

    Raises:
        Failure: a rule is broken.
        CaseBuildError: the graph is not valid, or its results are not within its own tolerance.
    """
    try:
        drafted = case.draft(seed)
        original = drafted.graph
        infer_graph(original)
    except Exception as error:
        raise CaseBuildError(f"graph {case.label!r}: {error}") from error
    try:
        _check_outputs(original, original, drafted, case)
    except Failure as failure:
        raise CaseBuildError(f"graph {case.label!r} is not within its tolerance before any pass: {failure}") from None
    outcomes = []
    graph, seen = original, [_fingerprint(original)]
    for number in range(1, _MAX_ROUNDS + 1):
        with failure_prefix(f"round {number}"):
            result = _applied(pass_, graph)
            found = _fingerprint(result.graph)
            if not result.changed:
                _require_unchanged(found, seen[-1])
                break
            infer_graph(result.graph)
            found = _fingerprint(result.graph)
            _require_progress(found, seen)
            outcomes.append(_check_outputs(original, result.graph, drafted, case))
        seen.append(found)
        graph = result.graph
    else:
        sizes = f"{len(original.nodes)} node(s) became {len(graph.nodes)}"
        raise Failure(f"the pass still reports changes after {_MAX_ROUNDS} rounds: {sizes}; a pass must come to an end")
    with failure_prefix("with Lite's passes"):
        together = _optimized(pass_, original)
        outcomes.append(_check_outputs(original, together, drafted, case))
    return merged(outcomes, "" if len(seen) > 1 else "the pass alone changes nothing in this graph")


def _applied(pass_: Pass, graph: Graph) -> passes.PassResult:
    """Run a pass once on a copy whose constants cannot be written, and check the graph that it leaves."""
    copy = _protected_copy(graph)
    try:
        result = apply(pass_, copy)
        ops.verify(result.graph)
    except LiteError as error:
        raise Failure(str(error)) from error.__cause__
    _require_interface(graph, result.graph)
    return result


def _optimized(pass_: Pass, graph: Graph) -> Graph:
    try:
        optimized, records = passes.optimize(_protected_copy(graph), extra=[pass_])
        ops.verify(optimized)
        infer_graph(optimized)
    except LiteError as error:
        raise Failure(str(error)) from error.__cause__
    unfinished = [r.name for r in records if r.round == records[-1].round and r.changed]
    if pass_.name in unfinished:
        others = ", ".join(sorted({*unfinished} - {pass_.name})) or "no other pass"
        raise Failure(
            f"after {records[-1].round} rounds, the pass still changes the graph, and so does: {others}; "
            "passes must not undo each other"
        )
    _require_interface(graph, optimized)
    return optimized


def _check_outputs(before: Graph, after: Graph, drafted: Drafted, case: GraphCase) -> Outcome:
    """Run the graph after a pass with the references, and compare it with the truth for the graph before."""
    runs: list[tuple[int, Mapping[str, int]]] = [(number, {}) for number in range(min(drafted.rounds, 2))]
    if case.signatures:
        runs = list(enumerate(case.signatures[:_MAX_SIGNATURES]))
    outcomes = []
    for number, sizes in runs:
        arrays = drafted.arrays(number, sizes)
        try:
            actual = evaluate_graph(after, arrays)
        except LiteError as error:
            raise Failure(f"the graph cannot be computed any more: {error}") from error.__cause__
        try:
            outcomes.append(check_outcome(before, arrays, actual, case.numerics, Allowance(), case.dtype))
        except Failure as failure:
            if failure.replay is not None:
                failure.replay = replace(failure.replay, graph=after)
            failure.reason = f"the outputs changed: {failure.reason}"
            raise
    return merged(outcomes)


def _require_interface(before: Graph, after: Graph) -> None:
    for kind, one, other in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        # The shape of an output may become known in more detail.
        found = [[(v.name, v.type if kind == "inputs" else v.dtype) for v in values] for values in (one, other)]
        if found[0] != found[1]:
            shown = [", ".join(f"{name}: {type}" for name, type in side) or "none" for side in found]
            raise Failure(f"the pass changed the {kind} of the graph from ({shown[0]}) to ({shown[1]})")


def _require_unchanged(found: _Fingerprint, before: _Fingerprint) -> None:
    if found == before:
        return
    pairs = zip(before.text.splitlines(), found.text.splitlines())
    change = next((f"{one.strip()!r} became {other.strip()!r}" for one, other in pairs if one != other), "")
    raise Failure(f"the pass reports no change, but changed the graph: {change or 'constants have other elements'}")


def _require_progress(found: _Fingerprint, seen: Sequence[_Fingerprint]) -> None:
    if found == seen[-1]:
        raise Failure("the pass reports a change, but the graph is as before: it would run again and again")
    if found in seen:
        raise Failure("the pass goes in circles: it made the graph of an earlier round again")


class _Fingerprint(tuple[str, str]):
    """The text of a graph, and a digest of its arrays, which the text abbreviates."""

    @property
    def text(self) -> str:
        return self[0]


def _fingerprint(graph: Graph) -> _Fingerprint:
    digest = hashlib.sha256()
    for scope in graph.walk():
        attributes = (a for node in scope.nodes for _, a in sorted(node.attributes.items()))
        for array in (*scope.constants.values(), *(a for a in attributes if isinstance(a, np.ndarray))):
            digest.update(str((array.dtype, array.shape)).encode() + array.tobytes())
    # Each inference gives new numbers to the symbols of unknown sizes.
    return _Fingerprint((re.sub(r"\?\d+", "?", str(graph)), digest.hexdigest()))


def _protected_copy(graph: Graph) -> Graph:
    """Return a copy whose constants share memory with those of the graph and cannot be written."""
    copy = graph.copy()
    for scope in copy.walk():
        for value, array in scope.constants.items():
            view: Array = array.view()
            view.flags.writeable = False
            scope.constants[value] = view
    return copy
