"""Compiled partitions: their launches, and running, saving and restoring them.

From the lowest layer up: :mod:`launches` (kernels and the locations of their arguments) and :mod:`faults` (errors that
depend on data), :mod:`graph` (a compiled partition as data), :mod:`saved` (the same as bytes), :mod:`executable`
(running it).
"""
