"""Measurements of models for `lite bench`: times, memory, agreement of outputs, and comparisons of two measurements."""

from lite_tools.benchmark.against import Comparison, compare_documents
from lite_tools.benchmark.agreement import Agreement, check_agreement
from lite_tools.benchmark.measurement import Budget, Measured, measure
from lite_tools.benchmark.noise import Change, change_of_median
from lite_tools.benchmark.summary import Summary, summarize

__all__ = [
    "Agreement",
    "Budget",
    "Change",
    "Comparison",
    "Measured",
    "Summary",
    "change_of_median",
    "check_agreement",
    "compare_documents",
    "measure",
    "summarize",
]
