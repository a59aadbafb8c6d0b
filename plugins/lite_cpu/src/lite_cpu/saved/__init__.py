"""Compiled programs as bytes: what an executable saves, and a backend restores without compiling anything.

:mod:`blob` is the frame (header, checksums, where everything is), :mod:`constants` the memory that a program reads
besides its arguments (constants of the graph by name, packed weights in the blob), :mod:`writing` and :mod:`restoring`
are the two directions.

Partitions whose shapes depend on data are not saved: what they compile depends on the data of their runs.

NOTE: a blob holds machine code, which is run as it is. It is checked against damage and mistakes, not against malice.
"""
