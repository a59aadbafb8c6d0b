"""The models of the comparison in fewer bits, each in float32 and in the form that the engines are measured on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from side_by_side import models, quantized
from side_by_side.models import ModelOnDisk, catalog

sys.path.insert(0, str(models.HERE.parents[1] / "tests" / "models"))
import sentence_encoder

__all__ = ["PRECISIONS", "Pair", "Precision"]

Array = np.ndarray[Any, Any]

#: Seed of the inputs that quantized models are measured on; their calibration had others.
_SEED = 5


@dataclass(frozen=True)
class Pair:
    """A model in two forms with the same inputs.

    Attributes:
        name: its name in the precision's results.
        title: its name in tables.
        wide: the model in float32.
        narrow: the form that is measured in fewer bits: the same files, or a quantized copy.
    """

    name: str
    title: str
    wide: ModelOnDisk
    narrow: ModelOnDisk


@dataclass(frozen=True)
class Precision:
    """A way to compute in fewer bits.

    Attributes:
        name: name in ``--precision``.
        title: name in tables.
        computes: the type that engines are allowed to compute float32 models in; ``"float32"`` if the files have the
            fewer bits.
        models: the functions that make or find the pairs, given a folder for inputs, by the names of the models.
    """

    name: str
    title: str
    computes: str
    models: Mapping[str, Callable[[Path], Pair]]


def _same_files(name: str) -> Callable[[Path], Pair]:
    def pair(folder: Path) -> Pair:
        stored = models.set_up(models.MODELS[name], folder)
        return Pair(name, stored.title, stored, stored)

    return pair


def _encoder(folder: Path) -> Pair:
    encoder = quantized.QUANTIZED["encoder_int8"]
    source, inputs = encoder.source(_kept("quantized")), encoder.inputs(1, _SEED)
    file = _stored(folder, "encoder", "MiniLM-like encoder", source, inputs)
    return Pair("encoder", file.title, file, file)


def _quantized(name: str) -> Callable[[Path], Pair]:
    def pair(folder: Path) -> Pair:
        entry, files = quantized.QUANTIZED[name], _kept("quantized")
        narrow = _stored(folder, name, entry.title, _quantized_files(files)[name], entry.inputs(1, _SEED))
        wide = _stored(folder, f"{name}_float32", entry.title, entry.source(files), entry.inputs(1, _SEED))
        return Pair(name, entry.title, wide, narrow)

    return pair


def _encoder_of(tokens: int, bits: int) -> Callable[[Path], Pair]:
    """Return the function that makes the encoder of one sentence, with the weights of its products in fewer bits."""

    def pair(folder: Path) -> Pair:
        name, title = f"encoder_{tokens}", f"MiniLM-like encoder, {tokens} token{'' if tokens == 1 else 's'}"
        source = _kept("quantized") / f"{name}.onnx"
        if not source.exists():
            from lite_onnx import write

            write(sentence_encoder.sentence_encoder(1, tokens, longest=quantized.TOKENS), source)
        target = source.with_name(f"{name}_{bits}_bits.onnx")
        if not target.exists():
            command = [sys.executable, str(models.HERE / "to_narrow_weights.py"), str(source), str(bits), str(target)]
            subprocess.run(command, check=True)
        inputs = sentence_encoder.sentences(1, tokens, _SEED)
        wide = _stored(folder, f"{name}_float32", title, source, inputs)
        return Pair(name, title, wide, _stored(folder, f"{name}_{bits}_bits", title, target, inputs))

    return pair


@cache
def _quantized_files(folder: Path) -> Mapping[str, Path]:
    return quantized.quantized_models(folder)


def _stored(folder: Path, name: str, title: str, source: Path, inputs: Mapping[str, Array]) -> ModelOnDisk:
    input_file = folder / f"{name}.npz"
    np.savez(input_file, **inputs)  # type: ignore[arg-type]  # NumPy's stubs take the names for its options
    shapes = {input_name: array.shape for input_name, array in inputs.items()}
    return ModelOnDisk(name, title, source, shapes, input_file, models.MAX_DIFFERENCE)


def _kept(name: str) -> Path:
    folder: Path = catalog.cache_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _weights(bits: int) -> Precision:
    pairs = {f"encoder_{tokens}": _encoder_of(tokens, bits) for tokens in (1, 32)}
    return Precision(f"weights{bits}", f"weights of {bits} bits", "float32", pairs)


_HALF = MappingProxyType({**{name: _same_files(name) for name in models.GROUPS["paddle"]}, "encoder": _encoder})
#: The values of ``--precision``.
PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        precision.name: precision
        for precision in (
            Precision("bfloat16", "bfloat16", "bfloat16", _HALF),
            Precision("float16", "float16", "float16", _HALF),
            Precision("int8", "int8", "float32", {name: _quantized(name) for name in quantized.QUANTIZED}),
            _weights(8),
            _weights(4),
        )
    }
)
