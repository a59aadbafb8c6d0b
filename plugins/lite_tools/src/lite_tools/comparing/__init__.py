"""Comparison of two runs of a model, step by step: `lite compare`."""

from lite_tools.comparing.compare import Found, RunningTruth, Truth, compare
from lite_tools.comparing.report import report_of, summary_of, verdict_of
from lite_tools.comparing.sides import Side
from lite_tools.comparing.stored import StoredTruth, save_values

__all__ = [
    "Found",
    "RunningTruth",
    "Side",
    "StoredTruth",
    "Truth",
    "compare",
    "report_of",
    "save_values",
    "summary_of",
    "verdict_of",
]
