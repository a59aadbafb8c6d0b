"""Compiled programs as pieces of bytes: what an executable saves, and a backend restores without compiling anything.

The first piece is the program: a description, tables and code, whose frame is :mod:`frame`. The others are arrays
that were packed from weights, one each, so that programs for other shapes and numbers of threads share them.
:mod:`constants` is about the memory that a program reads besides its arguments: constants of the graph, by name, and
those arrays. :mod:`writing` and :mod:`restoring` are the two directions.

Partitions whose shapes depend on data are not saved: what they compile depends on the data of their runs.

NOTE: a program holds machine code, which is run as it is: it is checked against damage and mistakes, not malice.
"""
