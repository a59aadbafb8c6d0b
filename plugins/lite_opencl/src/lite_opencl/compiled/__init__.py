"""A compiled partition: the launches that it consists of, running them, saving and restoring them.

From the ground up: :mod:`launches` (kernels and where their arguments lie) and :mod:`faults` (what only data can show
to be wrong), :mod:`graph` (all of a partition as data), :mod:`saved` (that as bytes), :mod:`executable` (running it).
"""
