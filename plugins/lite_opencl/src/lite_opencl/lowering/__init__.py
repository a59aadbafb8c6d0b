"""From the nodes of a partition to kernels with their arguments: one module per family of operators."""
