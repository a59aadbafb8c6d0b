"""Lowering of a partition's graph to a native program.

Each module of an operator family registers its lowering functions; the table in :mod:`.registry` lists the families.
"""
