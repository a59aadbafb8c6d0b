"""Models quantized to int8 by ONNX Runtime's tools, which every engine reads as the same file.

    .venv-bench/bin/python benchmarks/side_by_side/quantized.py FOLDER

makes the files. The convolutional networks have 8-bit activations with fixed scales and a scale for each channel of
the weights (QDQ). The encoder, shaped like MiniLM-L6, is there with fixed scales and with scales of each run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "models")]
import export_vision  # noqa: E402
import sentence_encoder  # noqa: E402

from side_by_side import models  # noqa: E402

__all__ = ["QUANTIZED", "QuantizedModel", "quantized_models"]

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]

#: Samples of the calibration, and the seed of the first; the inputs that are timed have another seed.
SAMPLES, SEED = 16, 77
#: Length of the encoder's sentences, in tokens.
TOKENS = 128


@dataclass(frozen=True)
class QuantizedModel:
    """A model and the way it is quantized.

    Attributes:
        title: name in tables and charts.
        source: function that makes or finds the float32 ONNX model, given a folder for new files.
        inputs: function that makes as many inputs as its first argument says, from the seed that is its second one.
        scheme: ``static`` or ``dynamic``, see ``to_int8.py``.
        operators: the operators to quantize; none for those that the tool chooses.
    """

    title: str
    source: Callable[[Path], Path]
    inputs: Callable[[int, int], Inputs]
    scheme: str = "static"
    operators: tuple[str, ...] = ()


def _classifier_file(name: str, folder: Path) -> Path:
    return models.set_up(models.MODELS[name], folder).onnx()


def _pictures(count: int, seed: int) -> Inputs:
    return {"image": export_vision.picture_like(count, 224, seed)}


def _encoder_file(folder: Path) -> Path:
    """Write the encoder with inputs of one sentence of ``TOKENS`` tokens."""
    target = folder / f"sentence_encoder-1x{TOKENS}.onnx"
    if not target.exists():
        from lite_onnx import write

        write(sentence_encoder.sentence_encoder(1, TOKENS, longest=TOKENS), target)
    return target


def _sentences(count: int, seed: int) -> Inputs:
    every = [sentence_encoder.sentences(1, TOKENS, seed + i) for i in range(count)]
    return {name: np.concatenate([own[name] for own in every]) for name in every[0]}


def _classifier(name: str) -> QuantizedModel:
    return QuantizedModel(f"{name} int8", partial(_classifier_file, name), _pictures)


#: The models by their names.
QUANTIZED: Mapping[str, QuantizedModel] = MappingProxyType(
    {
        **{f"{name}_int8": _classifier(name) for name in ("resnet50", "mobilenet_v2", "mobilenet_v3_large")},
        "encoder_int8": QuantizedModel("encoder int8", _encoder_file, _sentences, operators=("MatMul", "Gemm")),
        "encoder_int8_dynamic": QuantizedModel("encoder int8 dynamic", _encoder_file, _sentences, "dynamic"),
    }
)


def quantized_models(folder: Path) -> Mapping[str, Path]:
    """Make or find the quantized ONNX file of each model; files in ``folder`` are kept.

    Raises:
        ConversionError: the tools refuse a model.
        ModelUnavailableError: a float32 model cannot be made here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {name: _ensure(model, folder / f"{name}.onnx", folder) for name, model in QUANTIZED.items()}


def _ensure(model: QuantizedModel, target: Path, folder: Path) -> Path:
    """Quantize in a separate process, so that this one imports no engine."""
    if target.exists():
        return target
    source = model.source(folder)
    with tempfile.TemporaryDirectory() as temporary:
        calibration = Path(temporary) / "samples.npz"
        np.savez(calibration, **model.inputs(SAMPLES, SEED))
        options = [str(calibration), model.scheme, ",".join(model.operators), str(target)]
        command = [sys.executable, str(HERE / "to_int8.py"), str(source), *options]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise models.ConversionError(f"to_int8.py could not quantize {source}: {done.stderr.strip()[-500:]}")
    return target


if __name__ == "__main__":
    for path in quantized_models(Path(sys.argv[1])).values():
        print(path)
