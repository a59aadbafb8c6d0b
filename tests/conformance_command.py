"""Running the conformance suite by its command, for the tests of backends."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cases.tensors import short_name
from lite_conformance.reports.record import Record, Report, Status, read_report
from lite_core.ir import DType

__all__ = ["COMMON_TYPES", "assert_every_letter", "assert_green", "cases_of"]

#: Element types that most models use. Cases of other types run in the full tier.
COMMON_TYPES = frozenset({"f32", "i64", "bool"})
_TYPES = frozenset(short_name(dtype) for dtype in DType)

#: Number of failures that are shown in full.
_SHOWN = 20


def assert_green(
    backend: str,
    options: list[str],
    folder: Path,
    *,
    python: str | Path = sys.executable,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a part of the suite in one process (pytest's workers run in parallel already), and assert that it passes.

    Args:
        backend: name of the backend.
        options: options that choose the cases.
        folder: folder for the report.
        python: the Python that runs the suite.
        variables: its environment variables; by default those of this process.
    """
    written = folder / "report.json"
    command = [str(python), "-m", "lite_conformance", "--backend", backend, "--jobs", "1", *options]
    done = subprocess.run([*command, "--quiet", "--json", str(written)], capture_output=True, text=True, env=variables)
    report = read_report(written) if written.exists() else None
    bad = [record for record in report.records if record.status.is_bad] if report else []
    if report is None or bad or done.returncode:
        output = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        details = "\n".join(map(_explain, bad[:_SHOWN])) or output
        pytest.fail(
            f"exit code {done.returncode}, {len(bad)} bad cases\n{details}\nall: {shlex.join(command)}", pytrace=False
        )
    _check_reasons(report)


def _explain(record: Record) -> str:
    return f"{record.status}: {record.case}: {record.reason}\n    repeat: {record.repro}"


def _check_reasons(report: Report) -> None:
    """Assert that something passed, no failure is expected, and every record that did not pass has a reason."""
    statuses = {record.status for record in report.records}
    assert Status.PASSED in statuses
    assert Status.XFAIL not in statuses, "the package declares an expected failure"
    assert not [record.case for record in report.records if record.status is not Status.PASSED and not record.reason]


def cases_of(
    backend: str,
    levels: tuple[int, int],
    letters: str = "A-Z",
    *,
    types: Collection[str] = _TYPES,
    untyped: bool = True,
) -> list[str]:
    """Return the options of ``lite-conformance`` that choose some cases.

    Args:
        backend: its name.
        levels: the first and the last level.
        letters: the first and the last of the first letters of names, such as ``A-C``.
        types: short names of element types, such as ``f32`` of ``Relu[f32,5x7]``.
        untyped: whether cases without an element type are chosen: ``onnx[abs]``, ``graph[partitions-diamond]``.
    """
    first, last = letters.split("-")
    chosen = set()
    for case in all_cases(Settings(backend)):
        if levels[0] <= case.level <= levels[1] and first <= case.name[0].upper() <= last:
            start = case.name.partition(",")[0]
            kind = start.partition("[")[2].rstrip("]")
            if kind in types or (untyped and kind not in _TYPES):
                chosen.add(f"--case={start.rstrip(']')}*")
    return [f"--level=L{levels[0]}-L{levels[1]}", *sorted(chosen)]


def assert_every_letter(parts: list[str]) -> None:
    """Assert that the parts, ``A-C`` and so on, cover every letter."""
    letters = [chr(n) for part in parts for n in range(ord(part[0]), ord(part[-1]) + 1)]
    assert sorted(letters) == [chr(n) for n in range(ord("A"), ord("Z") + 1)]
