"""The conformance suite of Lite: tests of the claims of a backend.

From a terminal: ``lite-conformance --backend NAME``. From Python::

    from lite_conformance import check_backend

    records = check_backend("opencl", level="L2")

From pytest: :mod:`lite_conformance.pytest_plugin`. Names are imported on first use, so that the command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_conformance.reports.record import Record, Report, Status, read_report
    from lite_conformance.run.runner import check_backend, run_suite
    from lite_conformance.run.selection import Selection

__all__ = ["Record", "Report", "Selection", "Status", "__version__", "check_backend", "read_report", "run_suite"]

__version__ = "0.1.0"

_MODULES = {
    "Record": "reports.record",
    "Report": "reports.record",
    "Selection": "run.selection",
    "Status": "reports.record",
    "check_backend": "run.runner",
    "read_report": "reports.record",
    "run_suite": "run.runner",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'lite_conformance' has no attribute {name!r}")
    value = getattr(import_module(f"lite_conformance.{module}"), name)
    globals()[name] = value
    return value
