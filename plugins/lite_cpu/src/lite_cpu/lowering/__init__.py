"""From a partition's graph to a native program.

Each operator family registers how it is lowered; :mod:`.families` knows which operator is in which.
"""
