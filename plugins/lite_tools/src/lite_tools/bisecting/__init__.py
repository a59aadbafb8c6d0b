"""Bisection: which node, backend, precision, number of threads or graph pass makes the outputs of a model wrong."""

from lite_tools.bisecting.answers import Answers, arrays_hash, graph_hash, text_hash
from lite_tools.bisecting.by_pass import bisect_passes
from lite_tools.bisecting.by_unit import UNIT_KINDS, bisect_units
from lite_tools.bisecting.criteria import Agreement, Check, Criterion, Judgement, parse_check
from lite_tools.bisecting.findings import FOUND, NOTHING, UNSTEADY, Culprit, Findings
from lite_tools.bisecting.search import smallest_set
from lite_tools.bisecting.trials import Trials

__all__ = [
    "FOUND",
    "NOTHING",
    "UNIT_KINDS",
    "UNSTEADY",
    "Agreement",
    "Answers",
    "Check",
    "Criterion",
    "Culprit",
    "Findings",
    "Judgement",
    "Trials",
    "arrays_hash",
    "bisect_passes",
    "bisect_units",
    "graph_hash",
    "parse_check",
    "smallest_set",
    "text_hash",
]
