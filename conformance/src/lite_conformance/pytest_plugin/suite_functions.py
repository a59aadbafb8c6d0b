"""Test functions that stand for the suite in a test file.

NOTE: this module is imported by every pytest of the environment; it imports the suite only when a test runs without the
plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import pytest

from lite_conformance.pytest_plugin.requests import EXPECTATIONS, SuiteRequest

if TYPE_CHECKING:
    from lite_core.backend import Backend

__all__ = ["conformance_tests", "request_of"]

#: Attribute of the functions that :func:`conformance_tests` returns, by which the plugin recognises them.
_ATTRIBUTE = "lite_suite"


def conformance_tests(
    backend: str | Backend | Callable[[], Backend],
    level: str | None = None,
    *,
    cases: Sequence[str] = (),
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: str = "1/1",
    seed: int = 0,
    examples: int = 20,
    timeout: float = 60.0,
    models: Sequence[str] = (),
    expectations: str | Path | None = None,
    precision: str = "float32",
) -> Callable[[object], None]:
    """Return a test function that pytest collects as one test for each case.

    If the backend has no device, or answers No, the test is skipped with the reason. An ``xfail`` of the backend's
    package becomes pytest's; a test that passes although it is declared ``xfail`` fails. The arguments that select
    cases restrict each other.

    Where the plugin is switched off (``-p no:lite``), the function has the same cases as parameters, without markers
    and reports.

    Cases run in a worker process. A backend object runs there, too, if it is an attribute of a module that the process
    can import, such as the test file itself; the process imports the module and takes the attribute. Any other
    object runs in pytest's own process, which a crash or a hang of a case ends.

    Args:
        backend: an installed backend's name, ``"module:attribute"`` or ``"file.py:attribute"``; a backend; or a
            function that returns one.
        level: ``"L2"`` for levels 0 to 2, ``"L2-L3"`` for a range; when omitted, L2, or with ``cases`` all levels.
        cases: run only cases that match one of these patterns.
        ops: run only cases of operators that match one of these patterns.
        dtypes: run only cases in these element types.
        exclude: leave out cases that match one of these patterns.
        shard: ``"2/4"`` for the second of four parts.
        seed: seed of all random numbers.
        examples: number of examples that hypothesis draws for an operator and element type.
        timeout: time limit of a case in seconds; without effect in pytest's own process.
        models: model files to run in level 4.
        expectations: file to use instead of the backend's own ``conformance.toml``.
        precision: the level that float32 cases may be computed in: ``"bfloat16"``, ``"int8"``, ...
    """
    request = SuiteRequest(
        backend,
        level or ("" if cases else "L2"),
        _texts(cases),
        _texts(ops),
        _texts(dtypes),
        _texts(exclude),
        shard,
        seed,
        examples,
        timeout,
        _texts(models),
        None if expectations is None else str(expectations),
        precision,
        sys._getframe(1).f_globals,
    )

    @pytest.mark.parametrize("case", _CasesOfRequest(request), ids=_name)
    def test_conformance(case: object) -> None:
        from lite_conformance.pytest_plugin.plain import run_case

        run_case(request, case)

    vars(test_conformance)[_ATTRIBUTE] = request
    return test_conformance


class _CasesOfRequest(Collection[object]):
    """The parameters of a test where the plugin is switched off: they are chosen when pytest collects it."""

    def __init__(self, request: SuiteRequest) -> None:
        self._request = request

    def __iter__(self) -> Iterator[object]:
        from lite_conformance.pytest_plugin.plain import parameters

        return iter(parameters(self._request))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, case: object) -> bool:
        return any(case is other for other in self)


def _name(case: object) -> str:
    return str(getattr(case, "name", EXPECTATIONS))


def request_of(thing: object) -> SuiteRequest | None:
    """Return the request of a function that :func:`conformance_tests` returned; None for anything else."""
    found = vars(thing).get(_ATTRIBUTE) if isinstance(thing, FunctionType) else None
    return found if isinstance(found, SuiteRequest) else None


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))
