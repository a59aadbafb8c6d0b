"""Bisection by node, backend, precision or number of threads: which nodes must run as in one of two sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from glob import escape
from typing import Any

import numpy as np

from lite_core.errors import InputError, LiteError
from lite_core.observing import Observed
from lite_core.session import Session
from lite_tools.bisecting.answers import text_hash
from lite_tools.bisecting.criteria import GOOD, SKIPPED, Criterion, Judgement
from lite_tools.bisecting.findings import FOUND, NOTHING, UNSTEADY, Culprit, Findings
from lite_tools.bisecting.mixing import Mixture, Unit
from lite_tools.bisecting.search import smallest_set
from lite_tools.bisecting.trials import Outputs, Trials

__all__ = ["UNIT_KINDS", "bisect_units"]

Array = np.ndarray[Any, Any]

#: What can be bisected by dividing the nodes between two sessions.
UNIT_KINDS = ("node", "backend", "precision", "threads")

#: Operators of nodes in a culprit device that are listed.
_MOST_LISTED = 8


def bisect_units(
    by: str,
    a: Session,
    b: Session,
    inputs: Mapping[str, Array],
    criterion_of: Callable[[Outputs], Criterion],
    trials_of: Callable[[Criterion], Trials],
    load_b: Callable[[Mapping[str, str]], Session] | None = None,
) -> Findings:
    """Find the smallest set of nodes, or of devices, with which the outputs are wrong.

    By precision it is the smallest set of nodes that must run as in ``a`` for the outputs to be good.

    Args:
        by: one of :data:`UNIT_KINDS`.
        a: the trusted session.
        b: the session in doubt, of the same ready graph.
        inputs: an array for each input.
        criterion_of: makes the criterion from the outputs of ``a``.
        trials_of: makes the trials.
        load_b: loads ``b`` with another precision, to verify the result by precision.

    Raises:
        InputError: both sessions run every node in the same way, or ``a`` does not meet the criterion.
        LiteError: ``a`` cannot run the model.
    """
    return _Bisection(by, Mixture(a, b, {n: x.shape for n, x in inputs.items()}), inputs).run(
        criterion_of, trials_of, b, load_b
    )


class _Bisection:
    def __init__(self, by: str, mixture: Mixture, inputs: Mapping[str, Array]) -> None:
        self._by, self._mixture = by, mixture
        self._units = _by_device(mixture) if by == "backend" else mixture.units
        self._everything: frozenset[str] = frozenset().union(*(unit.nodes for unit in self._units))
        self._arrays = [np.asarray(inputs[v.name], v.dtype.numpy, order="C") for v in mixture.graph.inputs]
        if not self._units:
            raise InputError(
                f"a and b run every node in the same way, so there is nothing to bisect by {by}: choose other "
                "backends, threads or precisions for the two sides"
            )

    def run(
        self,
        criterion_of: Callable[[Outputs], Criterion],
        trials_of: Callable[[Criterion], Trials],
        b: Session,
        load_b: Callable[[Mapping[str, str]], Session] | None,
    ) -> Findings:
        expected = self._outputs(())
        criterion = criterion_of(expected)
        trials = trials_of(criterion)
        trials.starts("a")
        first = trials.judged_outputs("a", expected)
        if first.verdict != GOOD:
            raise InputError(f"a itself does not meet the criterion ({first.reason}): name an --a that does")
        again = trials.judged_now("a again", lambda: self._outputs(()))
        whole = trials.judged_now("b", lambda: self._outputs(self._everything))
        findings = Findings(self._by, UNSTEADY, criterion.text, len(self._units), whole)
        if again.verdict != GOOD:
            note = f"two runs of a were judged differently: {first.verdict}, then {again.verdict} ({again.reason})"
            return replace(findings, runs=trials.runs, notes=(note,))
        whole_again = trials.judged_now("b again", lambda: self._outputs(self._everything))
        if whole_again.verdict != whole.verdict:
            note = f"two runs of b were judged differently: {whole.verdict}, then {whole_again.verdict}"
            return replace(findings, runs=trials.runs, notes=(f"{note} ({whole_again.reason or whole.reason})",))
        if whole.verdict == GOOD:
            return replace(findings, verdict=NOTHING, runs=trials.runs)
        if whole.verdict == SKIPPED:
            raise InputError(f"the check cannot judge the outputs of b ({whole.reason})")
        trials.knows_whole(whole)
        found = self._search(trials, whole)
        findings = self._explained(replace(findings, verdict=FOUND), trials, found)
        if self._by == "precision" and load_b is not None and findings.verdict == FOUND:
            findings = self._verified(findings, trials, b, load_b)
        return replace(findings, runs=trials.runs, reused=trials.reused)

    def _search(self, trials: Trials, whole: Judgement) -> list[Unit]:
        def ask(units: frozenset[Unit]) -> bool | None:
            chosen = frozenset().union(*(unit.nodes for unit in units))
            on_b = self._everything - chosen if self._by == "precision" else chosen
            verdict = self._judged(trials, on_b).verdict
            if self._by == "precision":
                return None if verdict == SKIPPED else verdict == GOOD
            return verdict == whole.verdict if verdict in (GOOD, whole.verdict) else None

        def left(questions: int) -> None:
            trials.left = questions + 3  # the culprits alone, all others, and the kernel

        return smallest_set(self._units, ask, left)

    def _explained(self, findings: Findings, trials: Trials, found: Sequence[Unit]) -> Findings:
        """Return the findings with the culprits, confirmed by another run."""
        trials.left = None
        chosen = frozenset().union(*(unit.nodes for unit in found))
        others = self._everything - chosen
        if self._by == "precision":
            alone, wanted, remaining = self._judged_now(trials, others, "all but the culprits on b"), GOOD, None
        else:
            alone = self._judged_now(trials, chosen, "only the culprits on b")
            wanted, remaining = findings.whole.verdict, self._judged(trials, others)
        findings = replace(findings, alone=alone, others=remaining)
        if alone.verdict != wanted:
            note = f"the nodes found were judged differently when they ran again: {alone.verdict} ({alone.reason})"
            return replace(findings, verdict=UNSTEADY, notes=(note,))
        kernels = {} if self._by in ("precision", "backend") else self._kernels(trials, chosen)
        return replace(findings, culprits=tuple(self._culprit(unit, kernels) for unit in found))

    def _verified(
        self, findings: Findings, trials: Trials, b: Session, load_b: Callable[[Mapping[str, str]], Session]
    ) -> Findings:
        """Return the findings with the precision by node, verified by a session that uses it."""
        usual = b.planner.precision
        names = {escape(culprit.name): "float32" for culprit in findings.culprits}
        precision = {**names, **dict(usual.patterns), "*": usual.default}
        session = load_b(precision)
        names_of = [value.name for value in self._mixture.graph.inputs]
        verified = trials.judged_now(
            "a session with this precision", lambda: session.run(dict(zip(names_of, self._arrays)))
        )
        return replace(findings, precision=precision, verified=verified)

    def _culprit(self, unit: Unit, kernels: Mapping[str, Sequence[str]]) -> Culprit:
        if self._by == "backend":
            nodes = [node for node in self._mixture.graph.nodes if node.name in unit.nodes]
            ops = list(dict.fromkeys(node.qualified_op for node in nodes))
            more = [f"{len(ops) - _MOST_LISTED} more"] if len(ops) > _MOST_LISTED else []
            return Culprit(unit.label, device_b=unit.label, details=(f"{len(nodes)} nodes", *ops[:_MOST_LISTED], *more))
        node = self._mixture.node(unit.label)
        kernel = next((", ".join(kernels[name]) for name in (unit.label, *sorted(unit.nodes)) if name in kernels), "")
        return Culprit(
            unit.label, node.qualified_op, str(node.origin or ""), *self._mixture.devices(unit.label), kernel
        )

    def _kernels(self, trials: Trials, on_b: Collection[str]) -> dict[str, list[str]]:
        """Return the kernels that compute the culprits, by the names of the nodes."""
        trials.starts("the kernels of the culprits")
        observer = _Kernels()
        with suppress(LiteError):  # a run that fails is perhaps what is asked about
            self._mixture.plan(on_b).run(self._arrays, observer=observer)
        return observer.found

    def _judged(self, trials: Trials, on_b: frozenset[str]) -> Judgement:
        key = text_hash("\n".join(sorted(on_b)))
        count = len(on_b)
        return trials.judged(key, f"{count} of {len(self._everything)} nodes on b", lambda: self._outputs(on_b))

    def _judged_now(self, trials: Trials, on_b: frozenset[str], what: str) -> Judgement:
        return trials.judged_now(what, lambda: self._outputs(on_b))

    def _outputs(self, on_b: Collection[str]) -> dict[str, Array]:
        plan = self._mixture.plan(on_b)
        return dict(zip([value.name for value in self._mixture.graph.outputs], plan.run(self._arrays)))


class _Kernels:
    """Collects the kernels of each node."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        for node in nodes:
            kernels = self.found.setdefault(node, [])
            if kernel not in kernels:
                kernels.append(kernel)

    def computed(self, results: Observed) -> None:
        """Receive results, which are not looked at."""


def _by_device(mixture: Mixture) -> list[Unit]:
    """Return a unit for each device of the side in doubt."""
    found: dict[str, frozenset[str]] = {}
    for unit in mixture.units:
        device = mixture.devices(unit.label)[1] or "host"
        found[device] = found.get(device, frozenset()) | unit.nodes
    return [Unit(device, nodes) for device, nodes in found.items()]
