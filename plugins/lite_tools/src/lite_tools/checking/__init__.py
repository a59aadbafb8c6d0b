"""Checking graphs: random inputs that fit them, and what a pass made of them."""

from lite_tools.checking.comparison import compare_graphs, largest_difference
from lite_tools.checking.random_inputs import candidate_inputs, random_inputs

__all__ = ["candidate_inputs", "compare_graphs", "largest_difference", "random_inputs"]
