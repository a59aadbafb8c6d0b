"""Reports of problems: what others need to see and to repeat the failure of a model, without what is private."""

from lite_tools.reporting.bundle import ReportRequest, ReportResult, write_report
from lite_tools.reporting.scrubbing import Scrubber

__all__ = ["ReportRequest", "ReportResult", "Scrubber", "write_report"]
