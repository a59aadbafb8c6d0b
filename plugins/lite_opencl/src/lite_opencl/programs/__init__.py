"""Compiled programs: their sources, and the cache of their binaries.

From the lowest layer up: :mod:`sources` (the files in ``kernels/``, and the version of the code),
:mod:`element_types` (element types in OpenCL C), :mod:`kernel_source` (a file specialized to one kernel),
:mod:`binary_cache` (binaries on disk), :mod:`library` (the programs of a device: cached, restored or built).
"""
