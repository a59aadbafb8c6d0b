"""Symbolic dimensions: integer polynomials over named symbols.

A dimension is a plain ``int`` or a :class:`SymbolicDim`. Arithmetic returns an ``int`` whenever the result is known, so
that the same code computes shapes of static and dynamic models::

    >>> height = SymbolicDim.named("height")
    >>> (height + 2 - 3) // 2 + 1
    (height + 1)//2
    >>> _.evaluate({"height": 224})
    112

Two dimensions compare equal only if they are equal for all values of their symbols.
NOTE: every symbol stands for an integer >= 0. An unknown size is a fresh symbol, not ``None``.
NOTE: ``//`` rounds down. A division by zero has quotient 0 and remainder 0, like the operators Div and Mod on integers:
``n//n`` is not 1, because ``n`` may be 0. See :func:`quotient`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import reduce
from math import gcd, prod
from typing import Union

import numpy as np

__all__ = [
    "Dim",
    "Shape",
    "SymbolicDim",
    "broadcast",
    "evaluate_shape",
    "fresh_dim",
    "maximum",
    "never_negative",
    "product",
    "quotient",
]

# An atom is a symbol's name or a compound (operator, left, right). A monomial is a sorted tuple of atoms, repeated for
# powers. The empty monomial is the constant term.
_Atom = Union[str, "_Compound"]
_Monomial = tuple[_Atom, ...]

_fresh_numbers = itertools.count()
# Separates the prefix and the number of a fresh symbol; users' names must not contain it.
_FRESH_MARK = "?"
# A longer expression becomes an unknown size: it would be slow to compute with, and useless.
_MOST_ATOMS = 512


class _Compound(tuple):  # type: ignore[type-arg]
    """An operation that does not distribute over sums: ``(operator, left, right)``."""

    __slots__ = ()

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        operator, left, right = self
        a, b = _evaluate(left, bindings), _evaluate(right, bindings)
        if operator == "max":
            return max(a, b)
        if operator == "broadcast":
            return b if a == 1 else a
        if b == 0:
            return 0
        return a // b if operator == "//" else a % b

    def substitute(self, bindings: Mapping[str, Dim]) -> Dim:
        operator, left, right = self
        return OPERATIONS[operator](_substitute(left, bindings), _substitute(right, bindings))

    @property
    def atoms(self) -> int:
        """Length of the expression, see :attr:`SymbolicDim.atoms`."""
        return 1 + sum(side.atoms for side in self[1:] if isinstance(side, SymbolicDim))

    @property
    def is_infix(self) -> bool:
        """True if the printed form needs brackets beside other operators."""
        return self[0] in ("//", "%")

    def __str__(self) -> str:
        operator, left, right = self
        return f"{_bracket(left)}{operator}{_bracket(right)}" if self.is_infix else f"{operator}({left}, {right})"


class SymbolicDim:
    """A dimension known only by an expression over symbols. Immutable and hashable."""

    __slots__ = ("_atoms", "_hash", "_terms", "_text")

    def __init__(self, terms: Mapping[_Monomial, int]) -> None:
        self._terms: dict[_Monomial, int] = {m: c for m, c in terms.items() if c}
        self._hash: int | None = None
        self._text = ""
        self._atoms = 0

    @staticmethod
    def named(name: str) -> SymbolicDim:
        """Return the symbol ``name``, an unknown integer >= 0.

        Raises:
            ValueError: the name is not a text, empty, or contains ``?``, which marks symbols that
                :func:`fresh_dim` makes.
        """
        if not isinstance(name, str) or not name.strip() or _FRESH_MARK in name:
            raise ValueError(f"a symbol's name must be a text, not empty and without {_FRESH_MARK!r}, is {name!r}")
        return _symbol(name)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of every symbol in the expression."""
        atoms = {atom for monomial in self._terms for atom in monomial}
        sides = (side for atom in atoms if isinstance(atom, _Compound) for side in atom[1:])
        inner = [side.symbols for side in sides if isinstance(side, SymbolicDim)]
        return frozenset(atom for atom in atoms if isinstance(atom, str)).union(*inner)

    @property
    def atoms(self) -> int:
        """Length of the expression: the number of occurrences of symbols and compounds."""
        if not self._atoms:
            self._atoms = sum(1 if isinstance(atom, str) else atom.atoms for m in self._terms for atom in m) or 1
        return self._atoms

    @property
    def name(self) -> str | None:
        """The symbol's name if the dimension is a single symbol, else None."""
        names = [m[0] for m, c in self._terms.items() if c == len(m) == 1 and isinstance(m[0], str)]
        return names[0] if len(names) == len(self._terms) == 1 else None

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """Return the integer for given symbol values. Raises KeyError for a symbol without a value."""
        total = 0
        for monomial, coefficient in self._terms.items():
            atoms = [bindings[atom] if isinstance(atom, str) else atom.evaluate(bindings) for atom in monomial]
            total += prod(atoms, start=coefficient)
        return total

    def substitute(self, bindings: Mapping[str, Dim]) -> Dim:
        """Return the dimension with some symbols replaced; symbols without a value stay."""
        total: Dim = 0
        for monomial, coefficient in self._terms.items():
            atoms = [bindings.get(a, _symbol(a)) if isinstance(a, str) else a.substitute(bindings) for a in monomial]
            total = total + coefficient * product(atoms)
        return total

    # **** arithmetic ****

    def __add__(self, other: Dim) -> Dim:
        if not _is_dim(other):
            return NotImplemented
        terms = dict(self._terms)
        for monomial, coefficient in _terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return _simplest(terms)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _simplest({m: -c for m, c in self._terms.items()})

    def __sub__(self, other: Dim) -> Dim:
        return self + (-_plain(other)) if _is_dim(other) else NotImplemented

    def __rsub__(self, other: Dim) -> Dim:
        return (-self) + other if _is_dim(other) else NotImplemented

    def __mul__(self, other: Dim) -> Dim:
        if not _is_dim(other):
            return NotImplemented
        terms: dict[_Monomial, int] = {}
        for m1, c1 in self._terms.items():
            for m2, c2 in _terms_of(other).items():
                # Both are sorted already; sorting compares the texts of atoms, which is slow.
                monomial = tuple(sorted(m1 + m2, key=_atom_order)) if m1 and m2 else m1 or m2
                terms[monomial] = terms.get(monomial, 0) + c1 * c2
        return _simplest(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return _divide(self, _plain(other)) if _is_dim(other) else NotImplemented

    def __rfloordiv__(self, other: Dim) -> Dim:
        return _divide(_plain(other), self) if _is_dim(other) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return _remainder(self, _plain(other)) if _is_dim(other) else NotImplemented

    def __rmod__(self, other: Dim) -> Dim:
        return _remainder(_plain(other), self) if _is_dim(other) else NotImplemented

    # **** identity ****

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self._terms == other._terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        # NOTE: an unknown size is neither zero nor non-zero; returning either would hide a bug.
        raise TypeError(f"the truth value of the symbolic dimension {self} is unknown")

    def __str__(self) -> str:
        # Cached: each text is built from the texts of its parts twice, so that the time would double at each level.
        if not self._text:
            self._text = self._as_text()
        return self._text

    def _as_text(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self._terms.items(), key=_print_order):
            alone = coefficient == 1 and len(monomial) == 1
            factors = [f"({a})" if isinstance(a, _Compound) and a.is_infix and not alone else str(a) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            term = "*".join(factors)
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {term}" if text else (f"-{term}" if coefficient < 0 else term)
        return text

    __repr__ = __str__


Dim = int | SymbolicDim
Shape = tuple[Dim, ...]


def fresh_dim(prefix: str = "unknown") -> SymbolicDim:
    """Return a symbol for an unknown size, different from all other symbols of this process."""
    return _symbol(f"{prefix}{_FRESH_MARK}{next(_fresh_numbers)}")


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of dimensions; 1 if there are none."""
    one: Dim = 1
    return reduce(lambda left, right: left * right, dims, one)


def quotient(a: Dim, b: Dim) -> Dim:
    """Return ``a // b`` for a ``b`` that is never 0; common factors cancel: ``3*n`` by ``n`` is 3."""
    exact = None if isinstance(a, int) and isinstance(b, int) else _exact_quotient(a, b)
    return _divide(a, b) if exact is None else exact


def maximum(a: Dim, b: Dim) -> Dim:
    """Return the larger of two dimensions; an expression if the symbols' values decide which is larger."""
    a, b = _plain(a), _plain(b)
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    difference = a - b
    if never_negative(difference):
        return a
    return b if never_negative(-difference) else _compound(("max", a, b))


def broadcast(a: Dim, b: Dim) -> Dim:
    """Return the size of two dimensions broadcast against each other by NumPy's rules.

    Raises:
        ValueError: both are known, differ, and neither is 1.
    """
    a, b = _plain(a), _plain(b)
    if isinstance(a, int) and isinstance(b, int):
        if a != b and a != 1 and b != 1:
            raise ValueError(f"sizes {a} and {b} do not broadcast")
        return b if a == 1 else a
    if a == b or b == 1:
        return a
    # A known size other than 1 determines the result: the unknown one must be that size or 1.
    if a == 1 or isinstance(b, int):
        return b
    if isinstance(a, int):
        return a
    left, right = sorted((a, b), key=str)
    return _compound(("broadcast", left, right))


def evaluate_shape(shape: Iterable[Dim], bindings: Mapping[str, int]) -> tuple[int, ...]:
    """Return every dimension as an integer. Raises KeyError for a symbol without a value."""
    return tuple(_evaluate(dim, bindings) for dim in shape)


def _evaluate(dim: Dim, bindings: Mapping[str, int]) -> int:
    return dim.evaluate(bindings) if isinstance(dim, SymbolicDim) else dim


def _substitute(dim: Dim, bindings: Mapping[str, Dim]) -> Dim:
    return dim.substitute(bindings) if isinstance(dim, SymbolicDim) else dim


def _symbol(name: str) -> SymbolicDim:
    return SymbolicDim({(name,): 1})


def _is_dim(value: object) -> bool:
    return isinstance(value, (SymbolicDim, int, np.integer))


def _plain(dim: Dim) -> Dim:
    """Convert NumPy's integers to ``int``."""
    return dim if isinstance(dim, (SymbolicDim, int)) else int(dim)


def never_negative(dim: Dim) -> bool:
    """Return True if the form of the expression proves that it is >= 0 for all symbol values, else False."""
    return all(
        coefficient >= 0 and all(isinstance(atom, str) or _atom_never_negative(atom) for atom in monomial)
        for monomial, coefficient in _terms_of(dim).items()
    )


def _atom_never_negative(compound: _Compound) -> bool:
    operator, left, right = compound
    if operator == "max":
        return never_negative(left) or never_negative(right)
    return never_negative(right) and (operator == "%" or never_negative(left))


def _terms_of(dim: Dim) -> Mapping[_Monomial, int]:
    return dim._terms if isinstance(dim, SymbolicDim) else {(): int(dim)}


def _simplest(terms: Mapping[_Monomial, int]) -> Dim:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    return kept[()] if len(kept) == 1 and () in kept else _limited(SymbolicDim(kept))


def _compound(operation: tuple[str, Dim, Dim]) -> SymbolicDim:
    return _limited(SymbolicDim({(_Compound(operation),): 1}))


def _limited(dim: SymbolicDim) -> SymbolicDim:
    """Return the dimension, or a fresh symbol if the expression is too long."""
    return dim if dim.atoms <= _MOST_ATOMS else fresh_dim()


def _exact_quotient(a: Dim, b: Dim) -> Dim | None:
    """Return ``a / b`` if it is an integer polynomial for all symbol values, else None."""
    divisor = _terms_of(b)
    if len(divisor) != 1:
        return 1 if a == b else None
    ((monomial, coefficient),) = divisor.items()
    if coefficient == 0:
        return None
    quotient: dict[_Monomial, int] = {}
    for m, c in _terms_of(a).items():
        rest = list(m)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coefficient:
            return None
        quotient[tuple(rest)] = c // coefficient
    return _simplest(quotient)


def _remainder(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    # The remainder of an exact quotient and of a division by zero is 0.
    return 0 if b == 0 or _exact_quotient(a, b) is not None else _compound(("%", a, b))


def _divide(a: Dim, b: Dim) -> Dim:
    """Return the floor division with whole parts extracted: ``(2*n + 3)//2`` is ``n + 1``."""
    if b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = _exact_quotient(a, b) if isinstance(b, int) or never_negative(b - 1) else None
    if exact is not None:
        return exact
    if not isinstance(b, int) or b <= 0:
        return _compound(("//", a, b))
    whole: Dim = 0
    remainder: Dim = 0
    for monomial, coefficient in _terms_of(a).items():
        if coefficient % b == 0:
            whole = whole + _simplest({monomial: coefficient // b})
        elif monomial == ():
            whole, remainder = whole + coefficient // b, remainder + coefficient % b
        else:
            remainder = remainder + _simplest({monomial: coefficient})
    common = reduce(gcd, _terms_of(remainder).values(), b)
    if common > 1:
        remainder = _simplest({m: c // common for m, c in _terms_of(remainder).items()})
        b //= common
    if isinstance(remainder, int):
        return whole + remainder // b
    if b == 1:
        return whole + remainder
    # floor((floor(x / m) + c) / n) == floor((x + c * m) / (m * n)) for positive m and n
    symbolic = [(m, c) for m, c in remainder._terms.items() if m]
    if len(symbolic) == 1:
        (monomial, coefficient) = symbolic[0]
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], _Compound):
            operator, inner, divisor = monomial[0]
            if operator == "//" and isinstance(divisor, int) and divisor > 0:
                constant = remainder._terms.get((), 0)
                return whole + _divide(inner + constant * divisor, divisor * b)
    return whole + SymbolicDim({(_Compound(("//", remainder, b)),): 1})


#: The functions for the operators of compounds.
OPERATIONS = {"//": _divide, "%": _remainder, "max": maximum, "broadcast": broadcast}


def _bracket(dim: Dim) -> str:
    """Format an operand of ``//`` or ``%``: in brackets unless it is a number, a symbol or a call."""
    if isinstance(dim, int):
        return str(dim) if dim >= 0 else f"({dim})"
    ((monomial, coefficient), *others) = dim._terms.items()
    bare = not others and coefficient == 1 and len(monomial) == 1
    return str(dim) if bare and (isinstance(monomial[0], str) or not monomial[0].is_infix) else f"({dim})"


def _atom_order(atom: _Atom) -> tuple[bool, str]:
    return isinstance(atom, _Compound), str(atom)


def _print_order(item: tuple[_Monomial, int]) -> tuple[int, str]:
    return -len(item[0]), str(item[0])
