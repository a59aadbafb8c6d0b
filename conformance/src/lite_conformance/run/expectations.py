"""The expectations of a backend's package: ``conformance.toml`` in the folder of its plugin module.

::

    [[unsupported]]                    # permanent: the case is not run
    case = "Conv[*,*3d*]"
    reason = "the device has no 3-D convolution"

    [[xfail]]                          # temporary: the case is run and must fail
    case = "Softmax[f16,*]"
    reason = "issue 12: the sum overflows"

    [[tolerance]]                      # larger or smaller than the default
    case = "Exp[f32,*]"
    rtol = 1e-5
    reason = "the device's native_exp"
    precision = "float16"              # only at this level; an entry without it is for all levels

``*`` and ``?`` are wildcards; brackets are literal. An entry that matches no case of the suite is an error, as is a
case that passes although an ``xfail`` matches it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lite_conformance.cases.patterns import matches
from lite_conformance.judge.checks import Allowance
from lite_conformance.judge.precision import FLOAT32, LEVELS
from lite_core.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "FILE_NAME",
    "Entry",
    "Expectations",
    "find_expectations",
    "matches",
    "parse_expectations",
    "read_expectations",
]

FILE_NAME = "conformance.toml"
_MAX_TOLERANCE = 1e6
_KINDS: dict[str, tuple[str, ...]] = {
    "unsupported": ("case", "reason", "precision"),
    "xfail": ("case", "reason", "precision"),
    "tolerance": ("case", "reason", "precision", "rtol", "atol"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the file.

    Attributes:
        kind: ``unsupported``, ``xfail`` or ``tolerance``.
        case: pattern of the names of its cases, with wildcards.
        reason: the reason for the entry.
        rtol: for ``tolerance``, see :class:`lite_conformance.judge.tolerances.Tolerance`.
        atol: the same.
        precision: the precision level that the entry is for; empty for all.
    """

    kind: str
    case: str
    reason: str
    rtol: float | None = None
    atol: float | None = None
    precision: str = ""


@dataclass(frozen=True, slots=True)
class Expectations:
    """All entries of a file, the name of the file, and a digest of its text: 16 hexadecimal digits of SHA-256."""

    entries: tuple[Entry, ...] = ()
    source: str = ""
    digest: str = ""

    def at(self, precision: str) -> Expectations:
        """Return the entries for a precision level."""
        return replace(self, entries=tuple(e for e in self.entries if e.precision in ("", precision)))

    def find(self, kind: str, case: str) -> Entry | None:
        """Return the first entry of a kind that matches a case, or None."""
        return next((e for e in self.entries if e.kind == kind and matches(e.case, case)), None)

    def allowance(self, case: str) -> Allowance:
        """Return the tolerance that the entries set for a case."""
        entry = self.find("tolerance", case)
        return Allowance() if entry is None else Allowance(entry.rtol, entry.atol, entry.reason, FILE_NAME)

    def unmatched(self, cases: Iterable[str]) -> list[Entry]:
        """Return the entries that match none of these cases."""
        names = list(cases)
        return [e for e in self.entries if not any(matches(e.case, name) for name in names)]


def find_expectations(module: str) -> Expectations:
    """Read the ``conformance.toml`` in the folder of a module, or in the nearest folder above it in its package."""
    found = importlib.util.find_spec(module) if module not in sys.modules else sys.modules[module].__spec__
    origin = getattr(found, "origin", None) or getattr(sys.modules.get(module), "__file__", None)
    if not origin:
        return Expectations()
    folder = Path(origin).parent
    depth = module.count(".") + (Path(origin).name == "__init__.py")
    for _ in range(max(1, depth)):
        file = folder / FILE_NAME
        if file.is_file():
            return read_expectations(file)
        folder = folder.parent
    return Expectations()


def read_expectations(file: Path) -> Expectations:
    """Read a file.

    Raises:
        InputError: the file cannot be read, or entries are wrong; the message lists all problems.
    """
    try:
        return parse_expectations(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def parse_expectations(text: str, source: str) -> Expectations:
    """Return the entries in the text of a file.

    Raises:
        InputError: the text is not TOML, or entries are wrong; the message lists all problems.
    """
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{source} cannot be read: {error}") from error
    problems: list[str] = []
    entries: list[Entry] = []
    for kind, items in tables.items():
        if kind not in _KINDS or not isinstance(items, list):
            problems.append(f"{kind!r}: write [[unsupported]], [[xfail]] or [[tolerance]]")
            continue
        for number, item in enumerate(items, 1):
            found = list(_problems(kind, item))
            problems += [f"[[{kind}]] number {number}: {problem}" for problem in found]
            if not found:
                entries.append(Entry(kind, **item))
    if problems:
        raise InputError(f"{source}: " + "; ".join(problems))
    return Expectations(tuple(entries), source, hashlib.sha256(text.encode()).hexdigest()[:16])


def _problems(kind: str, item: Any) -> Iterable[str]:
    if not isinstance(item, dict):
        yield f"must be a table, is {item!r}"
        return
    for key in ("case", "reason"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            yield f"{key} must be a text that is not empty, is {item.get(key)!r}"
    if item.get("precision", FLOAT32.name) not in LEVELS:
        yield f"precision must be one of {', '.join(LEVELS)}, is {item['precision']!r}"
    for key in item.keys() - set(_KINDS[kind]):
        yield f"unknown key {key!r}; it has: {', '.join(_KINDS[kind])}"
    if kind == "tolerance":
        given = [key for key in ("rtol", "atol") if key in item]
        if not given:
            yield "give rtol, atol or both"
        for key in given:
            number = item[key]
            # An infinite tolerance would let NaN pass for a number.
            if not isinstance(number, (int, float)) or isinstance(number, bool) or not 0 <= number <= _MAX_TOLERANCE:
                yield f"{key} must be a number from 0 to {_MAX_TOLERANCE:g}, is {number!r}"
