"""Spaces of operators, one module for each family; see :mod:`scan.drawing`."""
