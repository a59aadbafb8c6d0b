"""Samples of cases that contain something of everything: for processors on which the whole suite takes hours."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from lite_conformance.cases.case import Case

__all__ = ["sample"]

_Group = tuple[int, str, str]

#: More than there are element types.
_MOST_TYPES = 64


def sample(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """Return at most ``count`` cases, in their order, spread evenly over levels, operators and element types.

    Every operator has a case before any has two, and every element type of an operator before any has two of it. The
    seed decides about the rest, and about which operators are there if there are more of them than ``count``.
    """
    random_numbers = random.Random(seed)
    groups: dict[_Group, list[int]] = defaultdict(list)
    for index, case in enumerate(cases):
        groups[case.level, case.op or case.name.partition("[")[0], case.dtype].append(index)
    names = list(groups)
    random_numbers.shuffle(names)
    types_so_far: dict[tuple[int, str], int] = defaultdict(int)
    ranked: list[tuple[int, int]] = []
    for name in names:
        members = groups[name]
        random_numbers.shuffle(members)
        kinds = types_so_far[name[:2]]
        types_so_far[name[:2]] += 1
        # The k-th case of the n-th element type of an operator; ties keep the shuffled order of the groups.
        ranked += [(kinds + k * _MOST_TYPES, index) for k, index in enumerate(members)]
    ranked.sort(key=lambda pair: pair[0])
    return [cases[index] for index in sorted(index for _, index in ranked[:count])]
