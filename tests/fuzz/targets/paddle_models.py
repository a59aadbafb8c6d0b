"""Targets: Paddle's models, a program and a file of parameters in one input."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from fuzz.bundles import pack, unpack, write_files
from fuzz.mutation import mutated_bytes, mutated_json, mutated_message
from fuzz.mutation.messages import smaller_messages
from fuzz.targets import FuzzTarget
from lite_core.errors import LiteError
from lite_core.session import make_ready
from lite_paddle.paddle_lite.container import decode, encode
from lite_paddle.plugin import PaddleFormat
from lite_paddle.reader.program_proto import message_class

__all__ = ["LegacyModel", "PaddleLiteModel", "PirModel", "mutated_parameters"]

ROOT = Path(__file__).resolve().parents[3]
_FIXTURES = ROOT / "plugins/lite_paddle/tests/fixtures"
_GOLDENS = ROOT / "tests/models/goldens"
_PARAMETERS = "model.pdiparams"
#: Larger models are no seeds: an execution takes too long.
_MOST_BYTES = 1 << 14


class _PaddleModel(FuzzTarget):
    """A program and its parameters."""

    allowed = (LiteError,)
    program: str
    change_program: Callable[[bytes, random.Random], bytes]

    def __init__(self) -> None:
        self._format = PaddleFormat()

    def seeds(self) -> Iterable[bytes]:
        """Return models that Paddle exported, from the tests of the reader and of whole networks."""
        suffix = Path(self.program).suffix
        for file in sorted([*_FIXTURES.glob(f"*/*/model{suffix}"), *_GOLDENS.glob(f"*/*/inference{suffix}")]):
            files = {self.program: self.without_call_stacks(file.read_bytes())}
            parameters = file.with_suffix(".pdiparams")
            if parameters.exists():
                files[_PARAMETERS] = parameters.read_bytes()
            if len(data := pack(files)) <= _MOST_BYTES:
                yield data

    @staticmethod
    def without_call_stacks(program: bytes) -> bytes:
        """Return a program without the Python lines that made it, which are most of its text."""
        return program

    def run(self, data: bytes, folder: Path) -> None:
        """Read the model and make its graph ready, as a session does."""
        try:
            files = unpack(data)
        except ValueError:
            return
        path = folder / self.program
        (folder / _PARAMETERS).unlink(missing_ok=True)
        write_files(files, folder)
        self._format.sniff(path)
        make_ready(self._format.read(path), copy=False)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the program most of the time, else the parameters."""
        try:
            files = unpack(data)
        except ValueError:
            return mutated_bytes(data, chance)
        if _PARAMETERS in files and chance.random() < 0.15:
            files[_PARAMETERS] = mutated_parameters(files[_PARAMETERS], chance)
        else:
            files[self.program] = self.change_program(files.get(self.program, b""), chance)
        return pack(files)


class LegacyModel(_PaddleModel):
    """A ProgramDesc, as Paddle 1 and 2 write it."""

    program = "model.pdmodel"

    @staticmethod
    def without_call_stacks(program: bytes) -> bytes:
        """Return the program without the attributes that no reader uses."""
        message = message_class("ProgramDesc").FromString(program)
        for op in (op for block in message.blocks for op in block.ops):
            kept = [attribute for attribute in op.attrs if attribute.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
        stripped: bytes = message.SerializeToString()
        return stripped

    @staticmethod
    def change_program(content: bytes, chance: random.Random) -> bytes:
        """Return the program with one change."""
        return mutated_message(content, message_class("ProgramDesc"), chance)

    def smaller(self, data: bytes) -> Iterable[bytes]:
        """Yield programs that lack a field or items of a list."""
        try:
            files = unpack(data)
        except ValueError:
            return
        for program in smaller_messages(files.get(self.program, b""), message_class("ProgramDesc")):
            yield pack({**files, self.program: program})


class PirModel(_PaddleModel):
    """A program of Paddle 3, in JSON."""

    program = "model.json"
    change_program = staticmethod(mutated_json)


class PaddleLiteModel(FuzzTarget):
    """A file of Paddle-Lite, with topology and parameters."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        self._format = PaddleFormat()

    def seeds(self) -> Iterable[bytes]:
        """Return files that Paddle-Lite's converter wrote, and what Lite writes for the same programs."""
        with np.load(_FIXTURES / "paddle_lite.npz") as archive:
            for array in (archive[name] for name in archive.files):
                if array.dtype == np.uint8 and array.size <= _MOST_BYTES:
                    yield array.tobytes()
                    yield encode(decode(array.tobytes()))

    def run(self, data: bytes, folder: Path) -> None:
        """Read the model and make its graph ready, as a session does."""
        path = folder / "model.nb"
        path.write_bytes(data)
        self._format.sniff(path)
        make_ready(self._format.read(path), copy=False)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change some bytes."""
        return mutated_bytes(data, chance)


def mutated_parameters(content: bytes, chance: random.Random) -> bytes:
    """Return a file of parameters in which the description of one tensor, or some bytes, are changed."""
    found = list(_descriptions(content))
    if not found or chance.random() < 0.3:
        return mutated_bytes(content, chance)
    start, length = chance.choice(found)
    description = content[start : start + length]
    changed = mutated_message(description, message_class("TensorDesc"), chance)
    return content[: start - 4] + struct.pack("<i", len(changed)) + changed + content[start + length :]


def _descriptions(content: bytes) -> Iterable[tuple[int, int]]:
    """Yield the position and the length of each tensor's description, as far as the file can be followed."""
    position = 0
    while position + 20 <= len(content):
        (levels,) = struct.unpack_from("<Q", content, position + 4)
        (length,) = struct.unpack_from("<i", content, position + 16)
        if levels or not 0 < length <= len(content) - position - 20:
            return
        yield position + 20, length
        description = message_class("TensorDesc")()
        try:
            description.ParseFromString(content[position + 20 : position + 20 + length])
        except DecodeError:
            return
        size = 4 if description.data_type == 5 else 8  # float32, else int64: good enough to find most of them
        for dim in description.dims:
            size *= max(dim, 0)
        position += 20 + length + size
