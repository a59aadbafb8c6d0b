"""The cases of a test file as parameters of an ordinary test, for runs in which the plugin is switched off."""

from __future__ import annotations

import atexit
from typing import cast

from lite_conformance.cases.case import Case
from lite_conformance.pytest_plugin.outcomes import raise_outcome
from lite_conformance.pytest_plugin.requests import SuiteRequest
from lite_conformance.pytest_plugin.suite import Suite

__all__ = ["parameters", "run_case"]

_suites: dict[SuiteRequest, Suite] = {}


def parameters(request: SuiteRequest) -> list[Case | None]:
    """Return the cases of a request, and None for the test of the backend's ``conformance.toml``."""
    return [None, *_suite(request).cases]


def run_case(request: SuiteRequest, case: object) -> None:
    """Run one of the parameters, and report its status as an outcome of pytest."""
    raise_outcome(_suite(request).run(cast("Case | None", case)))


def _suite(request: SuiteRequest) -> Suite:
    if request not in _suites:
        file = str(request.names_of_module.get("__file__", "test"))
        _suites[request] = Suite(file, request)
        atexit.register(_suites[request].close)
    return _suites[request]
