"""Serialization of dimensions as plain data: numbers, texts and lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_core.ir.dims import OPERATIONS, Dim, SymbolicDim, _Atom, _atom_order, _Compound, _Monomial, _simplest

__all__ = ["dim_from_data", "dim_to_data"]

# Readers of dimensions recurse; an explicit limit makes the result independent of the call depth.
_MOST_NESTING = 100


def dim_to_data(dim: Dim) -> Any:
    """Return an ``int`` unchanged, and an expression as the list of its terms.

    A term is ``[coefficient, factor, ...]``, a factor a symbol's name or ``[operator, left, right]`` with two
    dimensions and one of the operators ``//``, ``%``, ``max``, ``broadcast``. ``2*n + (h + 1)//2`` is
    ``[[2, "n"], [1, ["//", [[1, "h"], [1]], 2]]]``.
    """
    if not isinstance(dim, SymbolicDim):
        return int(dim)
    return [[coefficient, *map(_atom_to_data, monomial)] for monomial, coefficient in dim._terms.items()]


def _atom_to_data(atom: _Atom) -> Any:
    if isinstance(atom, str):
        return atom
    operator, left, right = atom
    return [operator, dim_to_data(left), dim_to_data(right)]


def dim_from_data(data: Any, names: Mapping[str, str]) -> Dim:
    """Return the dimension for the data that :func:`dim_to_data` returned. The data need not be trusted.

    Args:
        data: the plain data.
        names: new name of each symbol.

    Raises:
        ValueError, TypeError: the data are not a dimension.
        KeyError: a symbol is not among the names.
    """
    return _from_data(data, names, _MOST_NESTING)


def _from_data(data: Any, names: Mapping[str, str], nesting: int) -> Dim:
    if type(data) is int:
        return data
    if not nesting:
        raise ValueError(f"a dimension is nested more than {_MOST_NESTING} deep")
    terms: dict[_Monomial, int] = {}
    for coefficient, *factors in data:
        if type(coefficient) is not int:
            raise ValueError(f"a coefficient of a dimension must be an integer, is {coefficient!r}")
        atoms = [_atom_from_data(f, names, nesting - 1) for f in factors]
        # Factors are ordered by their text, which changes with the names; equal dimensions need the same order.
        monomial = tuple(sorted(atoms, key=_atom_order)) if len(atoms) > 1 else tuple(atoms)
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _simplest(terms)


def _atom_from_data(data: Any, names: Mapping[str, str], nesting: int) -> _Atom:
    if isinstance(data, str):
        return names[data]
    operator, left, right = data
    if operator not in OPERATIONS:
        raise ValueError(f"{operator!r} is not an operator of dimensions (these are: {', '.join(OPERATIONS)})")
    sides = [_from_data(side, names, nesting) for side in (left, right)]
    return _Compound((operator, *(sorted(sides, key=str) if operator == "broadcast" else sides)))
