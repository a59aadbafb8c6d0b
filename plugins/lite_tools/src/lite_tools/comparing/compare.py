"""The whole comparison of two sides, or of a side with a file of values from another machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lite_core.errors import InputError, LiteError
from lite_core.ir import Node
from lite_tools.comparing.engine import Comparison, Row, compare_values, screening
from lite_tools.comparing.inside import StoredSource, region_alone
from lite_tools.comparing.judging import Judge, needed_values
from lite_tools.comparing.regions import Network
from lite_tools.comparing.repro import write_repro
from lite_tools.comparing.sides import COARSENESS, Side
from lite_tools.comparing.spool import Spool
from lite_tools.comparing.values import Key, RunningSource, Seen, Source, capture, survey

__all__ = ["Found", "RunningTruth", "Truth", "compare"]

Array = np.ndarray[Any, Any]
Progress = Callable[[str], None]

#: How often the script runs nodes whose results change from run to run.
_RUNS_OF_SCRIPT = 50


class Truth(Protocol):
    """The side that is trusted: its results, which can be read several times.

    Attributes:
        label: its name for the user.
        precision: the element type that it may have been computed in.
        seen: its results, with the kernels that computed them.
        outputs: the outputs of the model, by name.
        network: its graph; None if that is not known.
    """

    label: str
    precision: str
    network: Network | None
    seen: Mapping[Key, Seen]
    outputs: Mapping[str, Array]

    def open(self, keys: Sequence[Key]) -> AbstractContextManager[Source]:
        """Return results in the order in which they were computed, for one pass."""

    def collect(self, keys: Sequence[Key], spool: Spool) -> None:
        """Put some results into a spool."""


class RunningTruth:
    """A trusted side that runs whenever its results are needed.

    Args:
        side: the side.
        inputs: the inputs by name.
    """

    def __init__(self, side: Side, inputs: Mapping[str, Array]) -> None:
        self.side = side
        self.label = side.label
        self.precision = side.precision
        self.network: Network | None = Network(side.plan.graph)
        self._inputs = side.run_inputs(inputs)
        seen, outputs = survey(side.plan, self._inputs)
        self.seen: Mapping[Key, Seen] = seen
        self.outputs: Mapping[str, Array] = dict(zip([v.name for v in side.plan.graph.outputs], outputs))

    def open(self, keys: Sequence[Key]) -> RunningSource:
        """Start a run in another thread."""
        return RunningSource(self.side.plan, self._inputs, keys)

    def collect(self, keys: Sequence[Key], spool: Spool) -> None:
        """Run until all of the results are there."""
        capture(self.side.plan, self._inputs, keys, spool.put)


@dataclass
class Found:
    """Everything that a comparison found.

    Attributes:
        comparison: the results.
        first: the first row that truly diverges, or None.
        inside: the rows of that step, node by node; None if it is one node, or cannot be divided.
        culprit: the nodes at fault: one, or all of the step if they only diverge together.
        repro: the script that repeats the fault, and its arrays.
    """

    comparison: Comparison
    first: Row | None = None
    inside: list[Row] | None = None
    culprit: tuple[Node, ...] = ()
    repro: tuple[Path, Path] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def kernel(self) -> Seen | None:
        """The kernel of b that computes the nodes at fault."""
        first = self.first
        if first is None:
            return None
        names = {node.name or node.op for node in self.culprit}
        kernels = [*(row.kernel_b for row in self.comparison.rows), *self.comparison.only_in_b.values()]
        return next((seen for seen in kernels if names & {*seen.nodes}), first.kernel_b)

    @property
    def differs(self) -> bool:
        """True if a step diverges, or a result changes from run to run."""
        return self.first is not None


def compare(
    truth: Truth,
    b: Side,
    inputs: Mapping[str, Array],
    *,
    other_inputs: Mapping[str, Array] | None = None,
    runs: int = 2,
    use_reference: bool = True,
    repro_folder: Path | None = None,
    progress: Progress = lambda text: None,
) -> Found:
    """Compare a side with the truth, find the first step that diverges, and the node in it.

    Args:
        truth: the trusted side.
        b: the side in doubt.
        inputs: the inputs by name.
        other_inputs: inputs for runs in between, which show what is kept from a run to the next.
        runs: the number of runs of b on equal inputs.
        use_reference: False to leave out the comparison of suspects with float64: errors above one percent diverge.
        repro_folder: the folder for the script that repeats the fault; None to write none.
        progress: called with a line about what is being done.

    Raises:
        InputError: the sides do not run the same model.
        LiteError: a run failed.
    """
    _require_one_model(truth, b)
    with Spool() as kept, Spool() as true:
        rows = compare_values(b, inputs, other_inputs, truth.seen, truth.open, truth.outputs, kept, runs, progress)
        found = Found(rows)
        network = truth.network
        precision = max(truth.precision, b.precision, key=COARSENESS.__getitem__)
        judge = Judge(inputs, (truth.label, b.label), precision, network)
        _mark_changing(rows, b)
        for row in rows.rows:
            if row.status == "suspect":
                progress(f"comparing {row.key} with float64")
                _decide(row, truth, judge, inputs, kept, true, use_reference)
            if row.status == "diverges":
                if row.key not in rows.changing:
                    _require_one_shape(row, truth, b)
                found.first = row
                break
        if found.first is not None:
            progress(f"looking into {found.first.key}")
            _look_inside(found, truth, b, inputs, true, judge)
            if repro_folder is not None:
                found.repro = _repro(found, truth, b, inputs, true, repro_folder)
    return found


def _require_one_model(truth: Truth, b: Side) -> None:
    own = [value.name for value in b.plan.graph.outputs]
    if not {*truth.outputs} & {*own}:
        raise InputError(
            f"the sides do not run the same model: {truth.label} has the outputs {', '.join(truth.outputs)}, {b.label} "
            f"has {', '.join(own)}; compare two runs of one model"
        )


def _require_one_shape(row: Row, truth: Truth, b: Side) -> None:
    """Raise an error for a result of another shape that does not depend on data: no kernel decides it."""
    if row.local is None and row.region is not None and row.region.output.type.is_static:
        raise InputError(
            f"the sides do not run the same model, or not in the same sizes: of {row.key}, {row.reason} "
            f"(on {b.label} and {truth.label}); compare two runs of one model"
        )


def _mark_changing(comparison: Comparison, b: Side) -> None:
    """Call the first result that changes between runs on equal inputs wrong: all results before it were equal."""
    if not comparison.changing:
        return
    key = comparison.changing[0]
    row = next((row for row in comparison.rows if row.key == key), None)
    shown = {each.value for each in (*comparison.only_in_b, *(row.key for row in comparison.rows))}
    region = Network(b.plan.graph).region(key.value, shown)
    if row is None:  # the other side does not show it
        row = Row(key, region, None, comparison.only_in_b.pop(key))
        later = {each.value for each in comparison.changing}
        place = next((i for i, each in enumerate(comparison.rows) if each.key.value in later), len(comparison.rows))
        comparison.rows.insert(place, row)
    row.region, row.status = region, "diverges"
    row.reason = "its result changes from run to run, on equal inputs"


def _decide(
    row: Row,
    truth: Truth,
    judge: Judge,
    inputs: Mapping[str, Array],
    kept: Spool,
    true: Spool,
    use_reference: bool,
) -> None:
    needed = needed_values(row, [*inputs], truth.seen.__contains__) if use_reference else None
    keys = [row.key, *(needed.inputs.values() if needed else ())]
    _collect(truth, keys, true)
    array = kept.get(row.key)
    assert array is not None
    judge.decide(row, true.get, array, needed)


def _collect(truth: Truth, keys: Sequence[Key], true: Spool) -> None:
    missing = [key for key in dict.fromkeys(keys) if key not in true]
    if missing:
        truth.collect(missing, true)


def _true_inputs(row: Row, truth: Truth, inputs: Mapping[str, Array], true: Spool) -> dict[str, Array] | None:
    """Return the true inputs of a row's region, or None if some are not known."""
    needed = needed_values(row, [*inputs], truth.seen.__contains__)
    if needed is None or row.region is None:
        return None
    _collect(truth, [*needed.inputs.values(), row.key], true)
    arrays = {value.name: inputs[value.name] for value in row.region.inputs if value.name in inputs}
    found = {name: true.get(key) for name, key in needed.inputs.items()}
    arrays.update((name, array) for name, array in found.items() if array is not None)
    return arrays


def _look_inside(found: Found, truth: Truth, b: Side, inputs: Mapping[str, Array], true: Spool, judge: Judge) -> None:
    """Find the node at fault among those of the step that diverges."""
    row = found.first
    assert row is not None
    if row.region is None:
        return
    found.culprit = tuple(node for node in row.region.nodes if node.name in row.differing) or row.region.nodes
    if len(found.culprit) < 2 or row.key in found.comparison.changing or row.differing:
        return
    arrays = _true_inputs(row, truth, inputs, true)
    alone = None if arrays is None else region_alone(b, row.region, arrays)
    if alone is None:
        found.notes.append("the nodes of the step cannot be run one by one")
        return
    side = Side(b.label, b.session, alone.plan, False, b.precision)
    seen = {Key(name): Seen("reference", "host", ()) for name in alone.results}
    with Spool() as kept, Spool() as of_inside:
        try:
            comparison = compare_values(
                side, alone.inputs, None, seen, lambda keys: StoredSource(alone.results), {}, kept, runs=1
            )
        except LiteError as error:
            found.notes.append(f"the nodes of the step do not run one by one: {error}")
            return
        reference = _ReferenceTruth(truth.precision, seen, alone.results)
        own_judge = Judge(alone.inputs, ("the reference", b.label), b.precision)
        for own in comparison.rows:
            if own.status == "suspect":
                _decide(own, reference, own_judge, alone.inputs, kept, of_inside, True)
    found.inside = comparison.rows
    wrong = next((own for own in comparison.rows if own.status == "diverges"), None)
    if wrong is not None and wrong.region is not None:
        names = {node.name for node in wrong.region.nodes}
        found.culprit = tuple(node for node in row.region.nodes if node.name in names)


class _ReferenceTruth:
    """The results of the references for the nodes of one step."""

    label = "the reference"
    network: Network | None = None

    def __init__(self, precision: str, seen: Mapping[Key, Seen], results: Mapping[str, Array]) -> None:
        self.precision = precision
        self.seen = seen
        self.outputs: Mapping[str, Array] = {}
        self._results = results

    def open(self, keys: Sequence[Key]) -> StoredSource:
        return StoredSource(self._results)

    def collect(self, keys: Sequence[Key], spool: Spool) -> None:
        for key in keys:
            spool.put(key, self._results[key.value])


def _repro(
    found: Found, truth: Truth, b: Side, inputs: Mapping[str, Array], true: Spool, folder: Path
) -> tuple[Path, Path] | None:
    """Write the script for the culprit; None if its true inputs are not known."""
    row = found.first
    assert row is not None
    arrays = _true_inputs(row, truth, inputs, true)
    if arrays is None or row.region is None:
        return None
    expected: dict[str, Array] = {}
    if len(found.culprit) == len(row.region.nodes):
        own = true.get(row.key)
        if own is not None:
            expected = {row.key.value: own}
    else:
        alone = region_alone(b, row.region, arrays)
        if alone is None:
            return None
        arrays = {**arrays, **alone.results}
        names = [v.name for node in found.culprit for v in node.outputs if v is not None]
        expected = {name: alone.results[name] for name in names}
    if not expected:
        return None
    options = b.session.planner.options
    device = row.kernel_b.device or b.label
    return write_repro(
        folder,
        row.region,
        found.culprit,
        arrays,
        expected,
        backend=device,
        threads=options.threads,
        precision=b.precision,
        tolerance=screening(b.precision),
        runs=_RUNS_OF_SCRIPT if row.key in found.comparison.changing else 1,
    )
