"""Compiled programs: what they are made of, and where they are kept.

From the ground up: :mod:`sources` (the files in ``kernels/``, and which version of the code this is),
:mod:`element_types` (element types in OpenCL C), :mod:`kernel_source` (a file specialised to one kernel),
:mod:`binary_cache` (binaries on disk), :mod:`library` (the programs of a device: found, restored or built).
"""
