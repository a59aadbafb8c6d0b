"""Shrinking of inputs: the same finding from fewer bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fuzz.bundles import pack, unpack

__all__ = ["shrunk"]


Smaller = Callable[[bytes], Iterable[bytes]]


def shrunk(data: bytes, still_found: Callable[[bytes], bool], smaller: Smaller, tries: int = 600) -> bytes:
    """Return a shorter input for which ``still_found`` is true.

    Args:
        data: the input, perhaps of several files, which are shrunk one by one.
        still_found: True if an input leads to the same finding.
        smaller: yields inputs that lack one part of the structure.
        tries: the most calls of ``still_found``.
    """
    budget = [tries]
    data = _without_parts(data, still_found, smaller, budget)
    try:
        files = unpack(data)
    except ValueError:
        return _shrunk(data, still_found, budget)
    for name in files:

        def with_part(part: bytes, name: str = name) -> bool:
            return still_found(pack({**files, name: part}))

        files[name] = _shrunk(files[name], with_part, budget)
    return pack(files)


def _without_parts(data: bytes, still_found: Callable[[bytes], bool], smaller: Smaller, budget: list[int]) -> bytes:
    """Remove parts of the structure as long as one can be removed; large inputs get half of the tries."""
    last = budget[0] // 4
    while budget[0] > last:
        for candidate in smaller(data):
            if len(candidate) < len(data):
                budget[0] -= 1
                if still_found(candidate):
                    data = candidate
                    break
                if budget[0] <= last:
                    break
        else:
            break
    return data


def _shrunk(data: bytes, still_found: Callable[[bytes], bool], budget: list[int]) -> bytes:
    """Remove ever smaller ranges of bytes."""
    length = len(data) // 2
    while length and budget[0] > 0:
        start = 0
        while start < len(data) and budget[0] > 0:
            candidate = data[:start] + data[start + length :]
            budget[0] -= 1
            if still_found(candidate):
                data = candidate
            else:
                start += length
        length //= 2
    return data
