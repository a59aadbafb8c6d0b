"""Serialization of compiled programs: an executable saves its program as pieces; a backend restores it uncompiled.

The first piece is the program: a description and tables in the format of :mod:`frame`. The second one is the code of
the runtime; then follow the code of each kernel and each array packed from weights, so that programs for other shapes
and numbers of threads can share them. :mod:`constants` handles the memory that a program reads besides its arguments:
constants of the graph, by name, and packed arrays. :mod:`writing` saves programs and :mod:`restoring` restores them.

Partitions whose shapes depend on data are not saved: their programs depend on the data of their runs.

NOTE: machine code is executed unchanged: it is checked against damage and mistakes, not malice. The core passes it on
only if it is trusted.
"""
