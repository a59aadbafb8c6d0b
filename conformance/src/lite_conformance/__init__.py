"""The conformance suite of Lite: tests of the claims of a backend.

From a terminal: ``lite-conformance --backend NAME``. From Python::

    from lite_conformance import check_backend

    records = check_backend("opencl", level="L2")

From pytest: :mod:`lite_conformance.pytest_plugin`.
"""

from lite_conformance.reports.record import Record, Report, Status, read_report
from lite_conformance.run.runner import check_backend, run_suite

__all__ = ["Record", "Report", "Status", "__version__", "check_backend", "read_report", "run_suite"]

__version__ = "0.1.0"
