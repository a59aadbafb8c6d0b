"""Judging results: the expected values, the tolerances, the comparison, and the outcome of a case."""
