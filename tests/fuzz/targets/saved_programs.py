"""Target: programs that lite-cpu saves in model files: the frame, its description, tables, and images of code.

A saved program is machine code that the seal of a file protects. Here it is only parsed and checked: the images are
read, but never mapped as executable memory, and nothing is executed.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from fuzz.mutation import mutated_bytes, mutated_json
from fuzz.mutation.plain import INTEGERS
from fuzz.targets import FuzzTarget
from lite_core.backend import Device, Options, Partition, SavedWeights, SavesState, Stale
from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.saved import restoring
from lite_cpu.saved.frame import compatibility
from lite_x86.backend import X86Backend

__all__ = ["SavedProgram"]

_CHECKED_FROM, _HEADER_BYTES, _ALIGNMENT = 12, 64, 64

#: Most bytes of a value that is read.
_MOST_BYTES = 1 << 20


class _Addresses(dict[str, int]):
    """Addresses of kernels that exist for the checks of tables; a kernel cannot be called."""

    def __getitem__(self, key: str) -> int:
        raise LiteError(f"{key} would be executed here")


def _parsed(keys: Sequence[str], kernels: Sequence[bytes], runtime: bytes) -> Any:
    """Parse the code of a program in the place of the function that maps it."""
    images = {key: CodeImage.from_bytes(kernel) for key, kernel in zip(keys, kernels)}
    CodeImage.from_bytes(runtime)
    native = SimpleNamespace(system=np.zeros(64, np.int64), run=None)
    return SimpleNamespace(addresses=_Addresses.fromkeys(images, 0), native=native)


class SavedProgram(FuzzTarget):
    """The first piece of a saved program; the others are those of the original."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        self._graph = _graph()
        options = Options(threads=1)
        executable = X86Backend().compile(Partition("part", self._graph), Device("x86"), options)
        assert isinstance(executable, SavesState)
        pieces = [piece.data if isinstance(piece, SavedWeights) else piece for piece in executable.save()]
        self._first, *rest = map(bytes, pieces)
        self._rest = [_aligned(piece) for piece in rest]
        self._compatibility = compatibility(options)

    def seeds(self) -> Iterable[bytes]:
        """Return a saved program."""
        yield self._first

    def run(self, data: bytes, folder: Path) -> None:
        """Read the frame, and restore the program up to the point where its code would be mapped."""
        pieces = [_aligned(data), *self._rest]
        with mock.patch.object(restoring, "code_of_file", _parsed):
            restored = restoring.restore_program(
                pieces, self._graph, 1, self._compatibility, WeightCache(), lambda: None
            )
        if isinstance(restored, Stale):
            raise LiteError(restored.reason)
        for value in [value for segment in restored.segments() for value in segment.values]:
            begin, end = value.extent  # inside the memory, which is checked, and so no larger than it
            if end - begin <= _MOST_BYTES:
                value.view(np.zeros(end - begin, np.uint8)).copy()

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the description, a number in the tables, or bytes; mostly repair the sizes and the checksum."""
        if chance.random() < 0.1 or len(data) < _HEADER_BYTES:
            return mutated_bytes(data, chance)
        size = struct.unpack_from("<Q", data, 20)[0]
        end = min(_HEADER_BYTES + size, len(data))
        text, body = data[_HEADER_BYTES:end], data[end + -end % _ALIGNMENT :]
        kind = chance.random()
        if kind < 0.4:
            text = mutated_json(text, chance)
        elif kind < 0.5:
            text = _with_other_segments(text, chance)
        elif kind < 0.8:
            # The tables, which are first, consist of 64-bit numbers.
            at = 8 * chance.randrange(max(1, min(len(body), 2048) // 8))
            number = chance.choice([*INTEGERS, chance.randrange(-300, 300)]) & ((1 << 64) - 1)
            body = body[:at] + number.to_bytes(8, "little") + body[at + 8 :]
        else:
            body = mutated_bytes(body, chance)
        return _framed(data[:8], text, body)


def _with_other_segments(text: bytes, chance: random.Random) -> bytes:
    """Change the values between kernels, which are a document within the description."""
    try:
        description = json.loads(text)
        description["segments"] = mutated_json(description["segments"].encode(), chance).decode()
    except (AttributeError, LookupError, TypeError, ValueError):  # an earlier mutation
        return text
    return json.dumps(description).encode()


def _framed(magic: bytes, text: bytes, body: bytes) -> bytes:
    content = text + bytes(-len(text) % _ALIGNMENT) + body
    sizes = struct.pack("<QQ", _HEADER_BYTES + len(content), len(text))
    checked = sizes.ljust(_HEADER_BYTES - _CHECKED_FROM, b"\0") + content
    return magic + struct.pack("<I", zlib.crc32(checked)) + checked


def _aligned(data: bytes) -> memoryview:
    """Return a copy at a multiple of 64 bytes, as sections of a file are."""
    memory = np.empty(len(data) + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    aligned = memory[start : start + len(data)]
    aligned[:] = np.frombuffer(data, np.uint8)
    return aligned.data.toreadonly()


def _graph() -> Graph:
    b = GraphBuilder("net")
    x = b.input("x", "float32", [2, 8])
    w = b.constant(np.ones((8, 4), np.float32), "w")
    y = b.add("Relu", [b.add("MatMul", [x, w])])
    table = b.constant(np.arange(4, dtype=np.float32), "table")
    b.output(b.add("Gather", [table, b.add("ArgMax", [y], {"axis": 1})]), "y")
    return b.build()
