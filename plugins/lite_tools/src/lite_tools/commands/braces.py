"""Several sizes in one shape on the command line: ``1x3x48x{32..1280:32}`` and ``{1,2,4}x3x224x224``."""

from __future__ import annotations

import re
from itertools import islice, product

from lite_tools.conversion.several_shapes import MOST_SHAPES

__all__ = ["BracesError", "expand_braces"]

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([0-9]{1,18})(?:\.\.([0-9]{1,18})(?::([0-9]{1,18}))?)?")


class BracesError(ValueError):
    """Braces that list no sizes; the message is for the user."""


def expand_braces(text: str) -> list[str]:
    """Return the text with every combination of the sizes that its braces list; the last braces change fastest.

    ``{32..128:32}`` lists 32, 64, 96 and 128, ``{1..3}`` lists 1, 2 and 3, and ``{1,2,4}`` what it says; the forms can
    be combined as in ``{1,2,8..32:8}``.

    Raises:
        BracesError: braces are not closed or list no sizes, or there are too many combinations.
    """
    parts = _BRACES.split(text)
    if any("{" in part or "}" in part for part in parts[::2]):
        raise BracesError(f"the braces of {text!r} do not match")
    lists = [_sizes(part) for part in parts[1::2]]
    found = ["".join(_woven(parts[::2], sizes)) for sizes in islice(product(*lists), MOST_SHAPES + 1)]
    if len(found) > MOST_SHAPES:
        raise BracesError(f"{text!r} stands for more than {MOST_SHAPES} shapes: use a larger step, or fewer sizes")
    return found


def _woven(texts: list[str], sizes: tuple[str, ...]) -> list[str]:
    return [piece for pair in zip(texts, (*sizes, "")) for piece in pair]


def _sizes(listed: str) -> list[str]:
    """Return the sizes that the content of a pair of braces lists."""
    found: dict[str, None] = {}
    for item in map(str.strip, listed.split(",")):
        range_ = _RANGE.fullmatch(item)
        if range_ is None:
            raise BracesError(f"write sizes like {{32..1280:32}} or {{1,2,4}}, not {{{listed}}}")
        first, last, step = int(range_[1]), int(range_[2] or range_[1]), int(range_[3] or 1)
        if last < first or step < 1:
            raise BracesError(
                f"{{{item}}} lists no sizes: write {{FIRST..LAST:STEP}} with FIRST at most LAST, STEP above 0"
            )
        sizes = range(first, last + 1, step)
        if len(sizes) > MOST_SHAPES:
            raise BracesError(f"{{{item}}} lists {len(sizes)} sizes, more than {MOST_SHAPES}: use a larger step")
        found.update((str(size), None) for size in sizes)
    return list(found)
