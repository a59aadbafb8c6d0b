"""Target: ONNX models, with the file of their external tensors in the same input."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import onnx

from fuzz.bundles import pack, unpack, write_files
from fuzz.mutation import mutated_bytes, mutated_message
from fuzz.mutation.messages import smaller_messages
from fuzz.targets import FuzzTarget
from fuzz.targets.onnx_seeds import seed_models
from lite_core.errors import LiteError
from lite_core.session import make_ready
from lite_onnx.format import OnnxFormat

__all__ = ["OnnxModel"]

_MODEL, _WEIGHTS = "model.onnx", "weights.bin"


class OnnxModel(FuzzTarget):
    """A model of ONNX."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        self._format = OnnxFormat()

    def seeds(self) -> Iterable[bytes]:
        """Return models with control flow, functions, sequences, sparse and external tensors."""
        for model, weights in seed_models():
            files = {_MODEL: model.SerializeToString(deterministic=True)}
            yield pack({**files, _WEIGHTS: weights} if weights else files)

    def run(self, data: bytes, folder: Path) -> None:
        """Read the model and make its graph ready, as a session does."""
        try:
            files = unpack(data)
        except ValueError:
            return
        (folder / _WEIGHTS).unlink(missing_ok=True)
        write_files(files, folder)
        path = folder / _MODEL
        self._format.sniff(path)
        make_ready(self._format.read(path), copy=False)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the model most of the time, else the file of tensors."""
        try:
            files = unpack(data)
        except ValueError:
            return mutated_bytes(data, chance)
        if _WEIGHTS in files and chance.random() < 0.05:
            files[_WEIGHTS] = mutated_bytes(files[_WEIGHTS], chance)
        else:
            files[_MODEL] = mutated_message(files.get(_MODEL, b""), onnx.ModelProto, chance)
        return pack(files)

    def smaller(self, data: bytes) -> Iterable[bytes]:
        """Yield models that lack a field or items of a list."""
        try:
            files = unpack(data)
        except ValueError:
            return
        for model in smaller_messages(files.get(_MODEL, b""), onnx.ModelProto):
            yield pack({**files, _MODEL: model})
