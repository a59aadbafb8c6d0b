"""The cases of a run: chosen by level, name, operator, element type, shard and sample."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.catalogue import operator_names, possible_cases
from lite_conformance.cases.onnx_node_data.source import find_node_data
from lite_conformance.cases.patterns import matches
from lite_conformance.run.sampling import sample
from lite_core.errors import InputError
from lite_core.ir import DType

__all__ = ["ALL_LEVELS", "EVERYTHING", "Selection", "parse_level", "parse_shard"]

ALL_LEVELS = range(6)
_HINTS = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of cases: those that every given field allows. Patterns have the wildcards ``*`` and ``?``.

    A case that is always selected, see :class:`Case`, is left out only by ``exclude``.

    Attributes:
        levels: the levels.
        cases: patterns of names; empty for every name.
        ops: patterns of operators with their domain, such as ``Conv`` or ``lite.*``; empty for every case.
        dtypes: patterns of element types, such as ``float16`` or ``f16``; empty for every case.
        exclude: patterns of names that are left out.
        only: names of cases, for example of those that failed; None for every name.
        shard: the number of this part, from 1, and the number of parts that the cases are dealt out to.
        sample: the number of cases to draw from the chosen ones, see :mod:`.sampling`; 0 for all.
    """

    levels: range = ALL_LEVELS
    cases: Sequence[str] = ()
    ops: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    exclude: Sequence[str] = ()
    only: frozenset[str] | None = None
    shard: tuple[int, int] = (1, 1)
    sample: int = 0

    def choose(self, settings: Settings) -> list[Case]:
        """Return the cases, in the order of the suite; generates only the parts of the suite that can match.

        Raises:
            InputError: a pattern matches no case at all, or no case matches all fields.
        """
        if settings.node_data is not None:
            find_node_data(settings.node_data)  # a wrong folder is an error even if no case of it is selected
        patterns = self.cases
        if self.only is not None and not patterns:
            patterns = [name.partition("[")[0] + "[*" for name in self.only]
        # A pattern is checked against all levels, so that a message can tell a wrong name from a wrong level.
        levels = ALL_LEVELS if patterns or self.exclude else self.levels
        ops = [_plain_op(op) for op in self.ops]
        possible = list(possible_cases(settings, levels, patterns or ["*"], ops or ["*"]))
        always = [c for c in possible if c.always and not any(matches(pattern, c.name) for pattern in self.exclude)]
        # If the cases of a package cannot be used, a pattern may have the name of one of them.
        for pattern in () if always else self.cases:
            self._require_match(pattern, possible)
        named = [c for c in possible if _any(self.cases, c.name)]
        for pattern, op in zip(self.ops, ops):
            _require_operator(pattern, op)
        for dtype in self.dtypes:
            _require_dtype(dtype)
        for pattern in self.exclude:
            if not any(matches(pattern, case.name) for case in possible):
                raise InputError(
                    f"exclude: no selected case is called {pattern!r}; `lite-conformance --list` shows all"
                )
        chosen = [c for c in named if not c.always and c.level in self.levels and self._allows(c, ops)]
        if not chosen and not always:
            raise InputError(f"no case matches all of: {self._text()}; `lite-conformance --list` shows what there is")
        if self.sample:
            chosen = sample(chosen, self.sample, settings.seed)
        chosen = always + chosen
        return chosen if self.shard[1] == 1 else _share(chosen, *self.shard)

    def describe(self) -> dict[str, Any]:
        """Return the fields that restrict the run, as JSON values for the header of the report."""
        first, last = self.levels[0], self.levels[-1]
        return {
            **({} if self.levels == ALL_LEVELS else {"level": f"L{first}-L{last}"}),
            **({"cases": list(self.cases)} if self.cases else {}),
            **({"ops": list(self.ops)} if self.ops else {}),
            **({"dtypes": list(self.dtypes)} if self.dtypes else {}),
            **({"exclude": list(self.exclude)} if self.exclude else {}),
            **({} if self.only is None else {"only": sorted(self.only)}),
            **({} if self.shard == (1, 1) else {"shard": "{}/{}".format(*self.shard)}),
            **({"sample": str(self.sample)} if self.sample else {}),
        }

    def _allows(self, case: Case, ops: Sequence[str]) -> bool:
        return (
            (self.only is None or case.name in self.only)
            and _any(ops, case.op)
            and (not self.dtypes or _is_dtype(case.dtype, self.dtypes))
            and not any(matches(pattern, case.name) for pattern in self.exclude)
        )

    def _require_match(self, pattern: str, possible: Sequence[Case]) -> None:
        if any(matches(pattern, case.name) for case in possible):
            return
        head = pattern.partition("[")[0]
        near = [c.name for c in possible if c.name.startswith(f"{head}[")][:_HINTS] or _similar(head, operator_names())
        hint = f"; similar names: {', '.join(near)}" if near else ""
        raise InputError(f"no case is called {pattern!r}{hint}; `lite-conformance --list` shows all")

    def _text(self) -> str:
        fields = {**self.describe(), "level": f"L{self.levels[0]}-L{self.levels[-1]}"}
        return ", ".join(
            f"{key} {value if isinstance(value, str) else ' '.join(value)}" for key, value in fields.items()
        )


#: The whole suite.
EVERYTHING = Selection()


def parse_level(text: str) -> range:
    """Parse levels: ``"L2"`` or ``"2"`` for levels 0 to 2; ``"L5-L5"`` or ``"2-3"`` for exactly those.

    Raises:
        InputError: the text has neither form.
    """
    found = re.fullmatch(r"[Ll]?([0-5])(?:\s*(?:-|\.\.)\s*[Ll]?([0-5]))?", text.strip())
    if found is None or (found[2] is not None and found[1] > found[2]):
        raise InputError(f"a level is L0 to L5 (all up to it) or a range such as L2-L3, is {text!r}")
    first, last = found.groups()
    return range(int(first) + 1) if last is None else range(int(first), int(last) + 1)


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a shard: ``"2/4"`` is the second of four.

    Raises:
        InputError: the text has another form, or there is no such part.
    """
    found = re.fullmatch(r"([1-9]\d{0,5})\s*/\s*([1-9]\d{0,5})", text.strip())
    if found is None or int(found[1]) > int(found[2]):
        raise InputError(f"a shard is i/n with i from 1 to n, such as 2/4 for the second of four, is {text!r}")
    return int(found[1]), int(found[2])


def _share(cases: Sequence[Case], number: int, count: int) -> list[Case]:
    """Return one of several parts of equal size: cases of similar cost are dealt out in turn."""

    def cost(index: int) -> tuple[int, int, bool]:
        case = cases[index]
        return case.level, case.timeout_factor, case.name.endswith(",drawn]")

    by_cost = sorted(range(len(cases)), key=cost)
    return [cases[index] for index in sorted(by_cost[number - 1 :: count])]


def _any(patterns: Iterable[str], text: str) -> bool:
    """Return True if there are no patterns, or one matches."""
    given = list(patterns)
    return not given or any(matches(pattern, text) for pattern in given)


def _plain_op(pattern: str) -> str:
    return pattern.removeprefix("ai.onnx.")


def _require_operator(pattern: str, op: str) -> None:
    names = operator_names()
    if not any(matches(op, name) for name in names):
        near = _similar(op, names)
        hint = f"; similar names: {', '.join(near)}" if near else ""
        raise InputError(f"op: no operator is called {pattern!r}{hint}; `lite ops` lists them")


def _require_dtype(pattern: str) -> None:
    if not any(_is_dtype(dtype.value, [pattern]) for dtype in DType):
        raise InputError(
            f"dtype: no element type is called {pattern!r}; there are {', '.join(d.value for d in DType)}, "
            "and the short names in cases' names, such as f16"
        )


def _is_dtype(dtype: str, patterns: Iterable[str]) -> bool:
    if not dtype:
        return False
    from lite_conformance.cases.tensors import short_name

    short = short_name(DType(dtype))
    return any(matches(pattern, dtype) or matches(pattern, short) for pattern in patterns)


def _similar(name: str, names: Sequence[str]) -> list[str]:
    """Return names that differ from a name only by their domain, or by a few letters."""
    same: Callable[[str], bool] = lambda other: other.rpartition(".")[2].lower() == name.rpartition(".")[2].lower()  # noqa: E731
    return [other for other in names if same(other)] or difflib.get_close_matches(name, names, _HINTS)
