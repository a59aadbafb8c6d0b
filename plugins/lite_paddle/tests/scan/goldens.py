"""The file with what Paddle made of the cases: outputs only; the cases are drawn again from their seed.

Compressed, the file holds a line of JSON, then the elements of all outputs. For each case the JSON has a digest of its
inputs and attributes, then its outputs with Paddle 2.6.2 and with 3.3.1 (``[[element type, shape, LoD], ...]``). They
are null where that version has none; the second are the number 1 if both versions agree. Floats keep 17 bits of their
mantissa: the tolerances are wider.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scan.drawing import Array, Case

__all__ = ["COUNT", "PATH", "SEED", "VERSIONS", "Outputs", "agree", "digest", "read", "write"]

PATH = Path(__file__).with_name("goldens.bin.xz")
#: The seed of the cases, and how many there are of each operator.
SEED, COUNT = 0, 4
#: The versions of Paddle, oldest first, as models have them.
VERSIONS = (2_006_002, 3_003_001)

Outputs = list[tuple[Array, list[list[int]]]]

# The low bits of a float32 that are dropped: 17 of 23 bits remain, an error of less than 1e-5.
_DROPPED = 6


def digest(case: Case) -> str:
    """Return a short digest of everything that was drawn, to tell whether a stored result is of this case."""
    found = hashlib.sha256()
    for name, value in sorted(asdict(case).items()):
        found.update(f"{name}{value if name != 'inputs' else ''}".encode())
    for slot, arrays in sorted(case.inputs.items()):
        for array in arrays:
            found.update(f"{slot}{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:10]


def agree(first: Outputs, second: Outputs) -> bool:
    """Return True if two versions have the same outputs, up to a few units in the last place."""
    if len(first) != len(second):
        return False
    for (a, levels_a), (b, levels_b) in zip(first, second):
        if a.dtype != b.dtype or a.shape != b.shape or levels_a != levels_b:
            return False
        if not np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=a.dtype.kind == "f"):
            return False
    return True


def write(cases: Sequence[Case], results: Sequence[Sequence[Outputs | None]], path: Path = PATH) -> None:
    """Store the outputs of both versions for every case; the cases must be those of :data:`SEED`."""
    index: dict[str, Any] = {}
    blob: list[bytes] = []
    for case, (old, new) in zip(cases, results):
        same = old is not None and new is not None and agree(old, new)
        listed = [_append(blob, old), 1 if same else _append(blob, new)]
        index[case.name] = [digest(case), *listed]
    body = json.dumps(index, separators=(",", ":")).encode() + b"\n" + _planes(blob)
    path.write_bytes(lzma.compress(body, preset=9 | lzma.PRESET_EXTREME))


@cache
def read(path: Path = PATH) -> dict[str, tuple[str, list[Outputs | None]]]:
    """Return for each case the digest of what was drawn, and the outputs of each version."""
    head, _, body = lzma.decompress(path.read_bytes()).partition(b"\n")
    taker = _Taker(body)
    found: dict[str, tuple[str, list[Outputs | None]]] = {}
    for name, (mark, old, new) in json.loads(head).items():
        first = taker.outputs(old)
        found[name] = (mark, [first, first if new == 1 else taker.outputs(new)])
    return found


def _append(blob: list[bytes], outputs: Outputs | None) -> list[Any] | None:
    if outputs is None:
        return None
    described: list[Any] = []
    for array, levels in outputs:
        if array.dtype == np.float32:
            blob.append(_shortened(array).astype("<f4").tobytes())
        else:
            blob.append(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        described.append(
            [array.dtype.name, list(array.shape), levels] if levels else [array.dtype.name, list(array.shape)]
        )
    return described


def _shortened(array: Array) -> Array:
    """Return float32 numbers with fewer bits in the mantissa, rounded where that does not make them infinite."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    mask = np.uint32(0xFFFFFFFF << _DROPPED & 0xFFFFFFFF)
    with np.errstate(over="ignore"):
        rounded = ((bits + np.uint32(1 << (_DROPPED - 1))) & mask).view(np.float32)
    shortened: Array = np.where(np.isfinite(array) & np.isfinite(rounded), rounded, (bits & mask).view(np.float32))
    return shortened


def _planes(blob: list[bytes]) -> bytes:
    """Return all bytes, every fourth together: exponents compress better beside exponents."""
    joined = b"".join(part + bytes(-len(part) % 4) for part in blob)
    return np.frombuffer(joined, np.uint8).reshape(-1, 4).T.tobytes()


class _Taker:
    """Takes arrays from the elements of the file, in their order."""

    def __init__(self, body: bytes) -> None:
        self._bytes = np.frombuffer(body, np.uint8).reshape(4, -1).T.tobytes()
        self._position = 0

    def outputs(self, described: list[Any] | None) -> Outputs | None:
        if described is None:
            return None
        return [(self._array(np.dtype(d), shape), levels[0] if levels else []) for d, shape, *levels in described]

    def _array(self, dtype: np.dtype[Any], shape: list[int]) -> Array:
        count = int(np.prod(shape, dtype=int))
        array = np.frombuffer(self._bytes, dtype, count, self._position).reshape(shape)
        self._position += -(-array.nbytes // 4) * 4
        return array
