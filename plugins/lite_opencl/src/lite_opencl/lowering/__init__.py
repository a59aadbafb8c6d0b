"""Lowering of the nodes of a partition to kernels with their arguments, one module for each family of operators."""
