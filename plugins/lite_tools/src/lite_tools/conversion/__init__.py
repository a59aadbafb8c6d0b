"""Conversion of models to .lite files for one or several targets, and checks of models with targets.

::

    report = convert("inference.pdmodel", "model.lite", targets=["x86", "opencl"])
    print(report.targets[0].saved_bytes, report.checks)

"""

from lite_tools.conversion.converter import PRECISIONS, STORED_TYPES, convert
from lite_tools.conversion.problems import coverage_problems
from lite_tools.conversion.report import Check, ConversionReport, GraphSummary, TargetReport
from lite_tools.conversion.targets import Coverage, Refusal, Target, coverage_of, find_targets

__all__ = [
    "PRECISIONS",
    "STORED_TYPES",
    "Check",
    "ConversionReport",
    "Coverage",
    "GraphSummary",
    "Refusal",
    "Target",
    "TargetReport",
    "convert",
    "coverage_of",
    "coverage_problems",
    "find_targets",
]
