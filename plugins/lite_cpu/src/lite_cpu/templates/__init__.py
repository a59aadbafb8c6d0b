"""Templates: programs of a partition for any input sizes for which the same kernels run in the same order."""
