"""Mutation campaign: systematic faults planted into the references, to measure which of them the suite's cases find."""
