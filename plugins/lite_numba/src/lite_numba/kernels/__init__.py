"""The kernels of the backend ``numba``, one module per family of operators."""
