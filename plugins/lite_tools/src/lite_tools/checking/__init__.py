"""Checks of graphs: random inputs, comparison of two graphs, passes with a check of each; and of names of members."""

from lite_tools.checking.comparison import compare_graphs, largest_difference
from lite_tools.checking.member_names import misspelt_members, undefined_members
from lite_tools.checking.passes import optimize_checked, pass_checker, run_passes_checked
from lite_tools.checking.random_inputs import candidate_inputs, random_inputs

__all__ = [
    "candidate_inputs",
    "compare_graphs",
    "largest_difference",
    "misspelt_members",
    "optimize_checked",
    "pass_checker",
    "random_inputs",
    "run_passes_checked",
    "undefined_members",
]
