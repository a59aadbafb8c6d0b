"""Running operator cases: hand-written cases, and examples that hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from lite_conformance.cases.case import Example
from lite_conformance.cases.hermetic import hermetic_hypothesis
from lite_conformance.cases.op_cases import Drawer, OpCase
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.checks import Allowance, check_expected
from lite_conformance.judge.outcome import Failure, Outcome, Refused, merged
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph

__all__ = ["CaseBuildError", "check_examples", "drawn_cases", "example_of", "run_drawn", "run_op_case"]

# After this many refusals without an accepted example, the remaining examples are not run.
_MAX_REFUSALS = 4


class CaseBuildError(LiteError):
    """A case of the suite is invalid: its node does not fit the operator."""


def run_op_case(subject: Subject, case: OpCase, dtype: DType, allowance: Allowance, number: int) -> Outcome:
    """Run one case.

    Raises:
        Failure, Refused: see :class:`Subject`.
        CaseBuildError: the case is invalid.
    """
    graph, inputs = _built(case, dtype, number)
    actual = subject.compile(graph).run(inputs)
    # Integers and booleans are compared exactly for every kind of operator.
    expected = case.expect(graph, inputs)
    return check_expected(graph, inputs, actual, expected, case.numerics, allowance)


def example_of(case: OpCase, dtype: DType, number: int) -> Example:
    """Return a case as data, for a seed.

    Raises:
        CaseBuildError: the case is invalid.
    """
    graph, inputs = _built(case, dtype, number)
    return Example(graph, inputs, case.expect(graph, inputs), case.numerics)


def _built(case: OpCase, dtype: DType, number: int) -> tuple[Graph, list[Array]]:
    try:
        return case.build(dtype, number)
    except Exception as error:
        raise CaseBuildError(f"{case.describe(dtype)}: {error}") from error


def run_drawn(
    subject: Subject, drawer: Drawer, dtype: DType, allowance: Allowance, number: int, examples: int
) -> Outcome:
    """Run examples that a drawer draws; hypothesis shrinks a failing one.

    Raises:
        Failure: the failure of the smallest failing example, which the reason describes.
        Refused: the backend refused every example.
    """

    def run(case: OpCase) -> Outcome:
        if subject.on_example is not None:
            subject.on_example(case.describe(dtype))
        return run_op_case(subject, case, dtype, allowance, number)

    return check_examples(drawer, dtype, number, examples, run)


def drawn_cases(drawer: Drawer, dtype: DType, number: int, examples: int) -> list[OpCase]:
    """Return the cases that :func:`run_drawn` runs if all of them pass."""
    cases: list[OpCase] = []

    def keep(case: OpCase) -> Outcome:
        cases.append(case)
        return Outcome()

    check_examples(drawer, dtype, number, examples, keep)
    return cases


def check_examples(
    drawer: Drawer, dtype: DType, number: int, examples: int, check: Callable[[OpCase], Outcome]
) -> Outcome:
    """Draw examples and check each; see :func:`run_drawn`.

    Args:
        drawer: draws a case.
        dtype: the element type of the cases.
        number: the seed.
        examples: number of examples.
        check: returns the outcome of a case, or raises Failure or Refused.
    """
    outcomes: list[Outcome] = []
    refusals: list[str] = []

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def every_example_is_right(data: Any) -> None:
        case = drawer(data.draw, dtype)
        if len(refusals) >= _MAX_REFUSALS and not outcomes:
            return
        try:
            outcomes.append(check(case))
        except Refused as refused:
            refusals.append(str(refused))
        except Failure as failure:
            failure.reason = f"{case.describe(dtype)}: {failure.reason}"
            failure.examples = len(outcomes) + 1
            raise

    try:
        with hermetic_hypothesis():
            every_example_is_right()
    except Flaky as flaky:
        raise Failure(f"an example failed, and passed when it was run again: {flaky}") from flaky
    if not outcomes:
        raise Refused(refusals[0] if refusals else "no example was drawn")
    note = f"{len(refusals)} of {len(outcomes) + len(refusals)} examples refused: {refusals[0]}" if refusals else ""
    return merged(outcomes, note)
