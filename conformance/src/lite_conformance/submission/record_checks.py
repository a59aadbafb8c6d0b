"""Checks of the records of must-pass cases: each must follow from the suite and from its own numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

from lite_conformance.cases.case import Case
from lite_conformance.judge.compare import Measured
from lite_conformance.judge.tolerances import Tolerance
from lite_conformance.reports.record import Record, Status

__all__ = ["problems_of_record", "problems_with_truth"]


def problems_of_record(record: Record, case: Case) -> Iterator[str]:
    """Yield what is wrong with the record of a case that is said to have passed."""
    for name, value in (("level", case.level), ("suite", case.suite), ("op", case.op), ("dtype", case.dtype)):
        if getattr(record, name) != value:
            yield f"its {name} is {getattr(record, name)!r}, in the suite {value!r}"
    if record.status is not Status.PASSED:
        reason = record.reason or record.expectation
        yield f"it has not passed: {record.status}{f': {reason}' if reason else ''}"
        return
    if record.examples < 1:
        yield "it is said to have passed, but nothing ran: examples is 0"
    if record.expectation:
        yield f"it has an expectation: {record.expectation!r}"
    if record.tolerance is not None:
        yield from _problems_of_tolerance(record.tolerance)
        if not _is_size(record.tolerance.rtol) or not _is_size(record.tolerance.atol):
            return
    if record.measured is not None:
        yield from _problems_of_numbers(record.measured, record.tolerance)


def problems_with_truth(record: Record, truth: Record) -> Iterator[str]:
    """Yield the differences between the record of a case and that of the references on this machine.

    Tolerances do not depend on the backend; nor does the number of compared elements.
    """
    used, right = record.tolerance, truth.tolerance
    if (used is None) != (right is None) or (record.measured is None) != (truth.measured is None):
        yield (
            "it has no numbers, although this case compares some" if truth.measured else "this case compares no numbers"
        )
        return
    if used is not None and right is not None and (used.rtol, used.atol) != (right.rtol, right.atol):
        yield (
            f"its tolerance is rtol {used.rtol!r}, atol {used.atol!r}; "
            f"the suite's is rtol {right.rtol!r}, atol {right.atol!r}"
        )
    if (
        record.measured is not None
        and truth.measured is not None
        and record.measured.elements != truth.measured.elements
    ):
        yield f"{record.measured.elements!r} elements were compared; the case has {truth.measured.elements:,}"


def _problems_of_tolerance(tolerance: Tolerance) -> Iterator[str]:
    pair = (tolerance.rtol, tolerance.atol)
    if tolerance.loosened or pair != tuple(tolerance.default) or tolerance.source != "default":
        yield f"its tolerance is set by the package: rtol {tolerance.rtol}, atol {tolerance.atol} ({tolerance.reason})"


def _problems_of_numbers(measured: Measured, tolerance: Tolerance | None) -> Iterator[str]:
    for field in fields(Measured):
        value = getattr(measured, field.name)
        if field.name != "worst" and not _is_size(value):
            yield f"its {field.name} is {value!r}, which is no error measure"
            return
    if measured.wrong or measured.elements < measured.wrong:
        yield f"it is said to have passed, but {measured.wrong:,} of {measured.elements:,} elements are wrong"
    rtol, atol = (tolerance.rtol, tolerance.atol) if tolerance is not None else (0.0, 0.0)
    if not (measured.required_rtol <= rtol and measured.required_atol <= atol) and not measured.wrong:
        yield (
            f"it is said to have passed, but its errors need rtol {measured.required_rtol:.3g} and atol "
            f"{measured.required_atol:.3g}; allowed are {rtol:.3g} and {atol:.3g}"
        )
    if not math.isfinite(measured.max_abs):
        yield "it is said to have passed, but its largest error is not finite"


def _is_size(value: object) -> bool:
    """Return True for a number of at least 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
