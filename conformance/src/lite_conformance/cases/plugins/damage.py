"""Damaged copies of a model file, with which a reader must end in a LiteError or a valid graph."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from lite_conformance.cases.plugins.reading import Reader
from lite_conformance.judge.outcome import Failure, Outcome

__all__ = ["check_flipped", "check_truncated"]

#: Yields damaged copies of the bytes of a file, each with a description.
Damage = Callable[[bytes], Iterator[tuple[str, bytes]]]

#: A reader may allocate this much for a damaged file: a multiple of the file's size, and a fixed amount, in bytes.
_MAX_FACTOR = 64
_MAX_BYTES = 2**28
#: Lengths of this many bytes from either end are always tried, because headers and footers are there.
_EDGE = 16


def check_truncated(reader: Reader, count: int) -> Outcome:
    """Read copies that end too early.

    Args:
        reader: the reader and the model.
        count: number of lengths to try for each file of the model, in addition to those near both ends.

    Raises:
        Failure: the reader raised something else than a LiteError, kept a file open or allocated too much memory.
    """
    return _check(reader, lambda content: _truncated(content, count))


def check_flipped(reader: Reader, count: int, seed: int) -> Outcome:
    """Read copies with a flipped bit, or with four bytes 0xFF, which make a size in a header huge.

    Args:
        reader: the reader and the model.
        count: number of damaged copies of each file of the model.
        seed: seed of the positions.

    Raises:
        Failure: see :func:`check_truncated`.
    """
    random = np.random.default_rng([seed, zlib.crc32(reader.case.label.encode())])
    return _check(reader, lambda content: _flipped(content, count, random))


def _truncated(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    size = len(content)
    spread = np.linspace(0, size - 1, count).astype(int).tolist() if size else []
    for length in sorted({*range(min(size, _EDGE)), *range(max(0, size - _EDGE), size), *spread}):
        yield f"truncated to {length} of {size} bytes", content[:length]


def _flipped(content: bytes, count: int, random: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    size = len(content)
    for number in range(count if size else 0):
        # Every second position is near the beginning, where most formats have their structure.
        position = int(random.integers(0, size if number % 2 else min(size, 256)))
        damaged = bytearray(content)
        if number % 3 == 2:
            damaged[position : position + 4] = b"\xff" * len(damaged[position : position + 4])
            yield f"with bytes 0xFF from offset {position}", bytes(damaged)
        else:
            bit = int(random.integers(0, 8))
            damaged[position] ^= 1 << bit
            yield f"with bit {bit} of byte {position} flipped", bytes(damaged)


def _check(reader: Reader, damage: Damage) -> Outcome:
    reader.read()  # imports what the reader needs, which must not count as its memory
    total = 0
    for file in reader.files():
        content = file.read_bytes()
        try:
            for what, damaged in damage(content):
                file.write_bytes(damaged)
                _read_damaged(reader, f"{file.name!r} {what}", len(content))
                total += 1
        finally:
            file.write_bytes(content)
    return Outcome(examples=total)


def _read_damaged(reader: Reader, what: str, size: int) -> None:
    tracemalloc.start()
    try:
        reader.read_damaged(what)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > _MAX_BYTES + _MAX_FACTOR * size:
        raise Failure(
            f"the reader allocated {peak:,} bytes for a file of {size:,} bytes, {what}: it must check sizes that a "
            "file claims before it allocates memory"
        )
