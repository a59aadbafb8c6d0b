"""Suggestions for misspelt names: commands, options, backends, files."""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__ = ["did_you_mean", "similar_file", "similar_names"]

#: Names that other frameworks have for the same.
_ALSO = {"fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16", "bf16": "bfloat16"}
#: Similarity, 0 to 1, from which a name may stand for another: ``rum`` and ``run`` have 0.67.
_SIMILARITY = 0.65
#: The similarity of names that differ in the order of their letters only.
_SWAPPED = 0.9
#: Names that are less similar than the best one by more than this are left out.
_MARGIN = 0.12


def similar_names(given: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that a misspelt one may stand for, the most similar first; upper and lower case are the same.

    Args:
        given: the name that the user has typed.
        names: the names that exist.
        most: the most names to return.
    """
    if _ALSO.get(given.lower()) in (names := [*names]):
        return [_ALSO[given.lower()]]
    rated = sorted((-_similarity(given.lower(), name.lower()), name) for name in dict.fromkeys(names))
    best = rated[0][0] if rated else 0.0
    if best == -1.0:
        return [name for rating, name in rated if rating == -1.0][:most]
    return [name for rating, name in rated if rating <= min(-_SIMILARITY, best + _MARGIN)][:most]


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return ``did you mean x86?`` for a misspelt name; empty if no name is similar."""
    near = similar_names(given, names)
    return f"did you mean {' or '.join(near)}?" if near else ""


def similar_file(path: str) -> str:
    """Return the file in the folder of a path that is not there whose name is the most similar; empty without one."""
    folder, name = os.path.split(path)
    try:
        names = [entry.name for entry in os.scandir(folder or ".") if not entry.name.startswith(".")]
    except (OSError, ValueError):  # ValueError: a name with a null character
        return ""
    stem, ending = os.path.splitext(name)  # equal endings make no names similar
    stems = {each.removesuffix(ending): each for each in names if each.endswith(ending)}
    return next((os.path.join(folder, stems[near]) for near in similar_names(stem, stems, 1)), "")


def _similarity(given: str, name: str) -> float:
    given, name = given.removeprefix("--"), name.removeprefix("--")  # which make no options similar
    if given == name:
        return 1.0
    if len(given) > 2 and sorted(given) == sorted(name):
        return _SWAPPED
    import difflib  # not at the top: only a mistake needs it

    return difflib.SequenceMatcher(None, given, name).ratio()
