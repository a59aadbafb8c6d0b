"""The models that the engines are compared on, and the file that each engine reads.

The eleven Paddle models and their pictures are those of ``tests/models/catalog.py``. Their ONNX and Paddle-Lite twins
are converted from the Paddle files (``to_onnx.py``, ``to_paddle_lite.py``) and kept in the same cache. The ONNX models
are those of ``tests/models/onnx_catalog.py``; their twins have the inputs' shapes written into them
(``fix_shapes.py``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "models"))
import catalog  # noqa: E402
import onnx_catalog  # noqa: E402
from catalog import ModelUnavailableError  # noqa: E402

__all__ = ["GROUPS", "MODELS", "ConversionError", "Model", "ModelUnavailableError", "PreparedModel", "prepare"]

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]

# In float32 the engines differ by up to 5e-5 of the output's range on these models; this is a wrong answer.
MOST_DIFFERENCE = 1e-3
# Where activations are rounded to 8 bits, and one engine computes in float32 what another rounds; 1/255 is a step.
MOST_DIFFERENCE_QUANTIZED = 2e-2


class ConversionError(Exception):
    """A twin of a model could not be made; the message has the converter's last words."""


@dataclass(frozen=True)
class Model:
    """A model with one output that counts.

    Attributes:
        name: what ``--models`` calls it.
        title: what tables and charts call it.
        files: makes or finds the Paddle program and its parameters, or the ONNX file.
        inputs: makes the inputs, by name.
        most_difference: the largest difference between engines that is not a wrong answer, as a share of the output's
            range.
    """

    name: str
    title: str
    files: Callable[[], catalog.ModelPath | Path]
    inputs: Callable[[], Inputs]
    most_difference: float = MOST_DIFFERENCE


def _classifier(name: str) -> Model:
    entry = f"{name}-legacy"
    return Model(name, name, lambda: catalog.ensure(entry), lambda: _only(catalog.example_input(entry)))


def _only(inputs: Inputs) -> Inputs:
    return {name: np.ascontiguousarray(array[:1]) for name, array in inputs.items()}


def _text_page() -> Inputs:
    """A page of text of 640 x 640 pixels, the size that PP-OCR's detector is used at."""
    pages = _only(catalog.example_input("pp_ocrv4_det"))
    return {name: np.ascontiguousarray(np.tile(page, (1, 1, 3, 2))[:, :, :640, :640]) for name, page in pages.items()}


def _ocr(name: str, title: str, inputs: Callable[[], Inputs] | None = None) -> Model:
    return Model(name, title, lambda: catalog.ensure(name), inputs or (lambda: _only(catalog.example_input(name))))


def _onnx(name: str, entry: onnx_catalog.OnnxModel) -> Model:
    most = MOST_DIFFERENCE_QUANTIZED if entry.quantized else MOST_DIFFERENCE
    find, inputs = partial(onnx_catalog.ensure, name), partial(entry.inputs, **entry.sizes[0])
    return Model(f"onnx_{name}", entry.title, find, inputs, most)


_PADDLE = (
    *(_classifier(name) for name in catalog.VISION),
    _ocr("pp_ocrv4_det", "PP-OCRv4 det", _text_page),
    _ocr("pp_ocrv4_rec", "PP-OCRv4 rec"),
    _ocr("pp_ocrv4_cls", "PP-OCR cls"),
)
_ONNX = tuple(_onnx(name, entry) for name, entry in onnx_catalog.MODELS.items())
MODELS: Mapping[str, Model] = MappingProxyType({model.name: model for model in (*_PADDLE, *_ONNX)})
#: What ``--models`` calls several at once.
GROUPS = MappingProxyType({"paddle": [m.name for m in _PADDLE], "onnx": [m.name for m in _ONNX]})


@dataclass(frozen=True)
class PreparedModel:
    """A model whose files and inputs lie on disk, and that finds or makes its twins.

    Attributes:
        source: its files as they were found: a Paddle program and its parameters, or an ONNX file.
        shapes: of the inputs, by name.
        input_file: an ``.npz`` file with the inputs.
    """

    name: str
    title: str
    source: catalog.ModelPath | Path
    shapes: Mapping[str, tuple[int, ...]]
    input_file: Path
    most_difference: float

    @property
    def files(self) -> tuple[str, ...]:
        """The files as they were found."""
        own = self.source
        return (str(own),) if isinstance(own, Path) else (str(own.model), str(own.params))

    @property
    def is_paddle(self) -> bool:
        return not isinstance(self.source, Path)

    def onnx(self) -> Path:
        """Return the ONNX twin, whose inputs have exactly ``shapes``.

        Raises:
            ConversionError: paddle2onnx is not installed or refuses the model.
        """
        twin = self._twin("onnx")
        if not self.is_paddle:
            return self._ensure(twin, "fix_shapes.py", [*self.files, json.dumps(self.shapes), str(twin)])
        (shape,) = self.shapes.values()
        return self._ensure(twin, "to_onnx.py", [*self.files, json.dumps(shape), str(twin)])

    def lite(self, backend: str) -> Path:
        """Return the model's ``.lite`` file for these shapes and one thread, made anew in each run of the benchmark.

        Args:
            backend: the target; ``auto`` is x86.

        Raises:
            ConversionError: ``lite convert`` refuses the model.
        """
        file = self.input_file.with_suffix(".lite")
        if not file.exists():
            target = "x86" if backend == "auto" else backend
            options = ["--targets", target, "--threads", "1"]
            for name, shape in self.shapes.items():
                if shape:
                    options += ["--input-shape", f"{name}={'x'.join(map(str, shape))}"]
            command = [sys.executable, "-m", "lite_core", "convert", self.files[0], "-o", str(file), *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise ConversionError(f"lite convert refused {self.files[0]}: {done.stderr.strip()[-500:]}")
        return file

    def paddle_lite(self, python: Path) -> Path:
        """Return the Paddle-Lite twin.

        Args:
            python: the interpreter beside which ``paddle_lite_opt`` lies.

        Raises:
            ConversionError: paddlepaddle is not installed, or ``paddle_lite_opt`` refuses the model.
        """
        twin = self._twin("nb")
        optimizer = python.parent / "paddle_lite_opt"
        arguments = [*self.files, str(optimizer), str(twin)]
        return self._ensure(twin, "to_paddle_lite.py", arguments)

    def _twin(self, suffix: str) -> Path:
        shapes = "_".join("x".join(map(str, shape)) for shape in self.shapes.values() if shape)
        folder: Path = catalog.cache_folder() / "twins"
        return folder / f"{self.name}-{shapes}.{suffix}"

    def _ensure(self, twin: Path, script: str, arguments: list[str]) -> Path:
        """Convert in a process of its own: the converters are native code and end the process as they please."""
        if twin.exists() and twin.stat().st_mtime >= Path(self.files[0]).stat().st_mtime:
            return twin
        twin.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, str(HERE / script), *arguments], capture_output=True, text=True)
        if done.returncode or not twin.exists():
            last_words = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise ConversionError(f"{script} could not convert {self.files[0]}: {last_words}")
        return twin


def prepare(model: Model, folder: Path) -> PreparedModel:
    """Make or find the model's files, and write its inputs into ``folder``.

    Raises:
        ModelUnavailableError: the files are missing and cannot be made here.
    """
    source, inputs = model.files(), model.inputs()
    input_file = folder / f"{model.name}.npz"
    np.savez(input_file, **inputs)
    shapes = {name: array.shape for name, array in inputs.items()}
    return PreparedModel(model.name, model.title, source, shapes, input_file, model.most_difference)
