"""The suite as pytest tests: a plugin of pytest, which is loaded wherever lite-conformance is installed.

From the command line, without any test file::

    pytest --lite-backend toy --lite-level L2

or with one line in a test file::

    from lite_conformance.pytest_plugin import conformance_tests

    test_conformance = conformance_tests("toy", level="L2")

Each case is a test with the markers ``lite_level``, ``lite_op`` and ``lite_dtype``. Cases run
in a worker process, so a kernel that crashes its process is a failed test, and the other tests still run.

NOTE: this module is imported by every pytest of the environment, so it must not import numpy or the core; the other
modules of this package are imported when a run asks for the suite.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from lite_conformance.pytest_plugin.options import MARKERS, add_options, requests_of
from lite_conformance.pytest_plugin.requests import SEARCH_PATH_AT_START
from lite_conformance.pytest_plugin.suite_functions import conformance_tests, request_of

if TYPE_CHECKING:
    from lite_conformance.pytest_plugin.items import CaseItem

__all__ = ["conformance_tests"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which all begin with ``--lite-``."""
    SEARCH_PATH_AT_START.update(sys.path)
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and prepare what the options ask for."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    requests = requests_of(config)
    if requests:
        from lite_conformance.pytest_plugin.collecting import SuitesOfCommandLine

        config.pluginmanager.register(SuitesOfCommandLine(requests), "lite-suites-of-command-line")
    is_worker_of_xdist = hasattr(config, "workerinput")
    if not is_worker_of_xdist and (requests or config.getoption("lite_json") or config.getoption("lite_html")):
        from lite_conformance.pytest_plugin.reporting import ReportWriter

        config.pluginmanager.register(ReportWriter(config), "lite-reports")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[CaseItem] | None:
    """Collect the cases of what :func:`conformance_tests` returned, with markers, and quicker than its parameters."""
    request = request_of(obj)
    if request is None or not collector.funcnamefilter(name):
        return None
    from lite_conformance.pytest_plugin.collecting import items_of_function

    return items_of_function(collector, name, request, getattr(obj, "pytestmark", ()))
