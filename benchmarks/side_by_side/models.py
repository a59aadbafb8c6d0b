"""The eleven models that the engines are compared on, and the file that each engine reads.

The Paddle files and the pictures are those of ``tests/models/catalog.py``. The ONNX and Paddle-Lite twins
are converted from the Paddle files (``to_onnx.py``, ``to_paddle_lite.py``) and kept in the same cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "models"))
import catalog  # noqa: E402
from catalog import ModelUnavailableError  # noqa: E402

__all__ = ["MODELS", "ConversionError", "Model", "ModelUnavailableError", "PreparedModel", "prepare"]

Array = np.ndarray[Any, Any]


class ConversionError(Exception):
    """A twin of a model could not be made; the message has the converter's last words."""


@dataclass(frozen=True)
class Model:
    """A model with one input and one output that counts.

    Attributes:
        name: what ``--models`` calls it.
        title: what tables and charts call it.
        files: makes or finds the Paddle program and its parameters.
        picture: makes the input: name and array.
    """

    name: str
    title: str
    files: Callable[[], catalog.ModelPath]
    picture: Callable[[], tuple[str, Array]]


def _classifier(name: str) -> Model:
    entry = f"{name}-legacy"
    return Model(name, name, lambda: catalog.ensure(entry), lambda: _only(catalog.example_input(entry)))


def _only(inputs: Mapping[str, Array]) -> tuple[str, Array]:
    ((name, array),) = inputs.items()
    return name, np.ascontiguousarray(array[:1])


def _text_page() -> tuple[str, Array]:
    """A page of text of 640 x 640 pixels, the size that PP-OCR's detector is used at."""
    name, page = _only(catalog.example_input("pp_ocrv4_det"))
    return name, np.ascontiguousarray(np.tile(page, (1, 1, 3, 2))[:, :, :640, :640])


def _ocr(name: str, title: str, picture: Callable[[], tuple[str, Array]] | None = None) -> Model:
    return Model(name, title, lambda: catalog.ensure(name), picture or (lambda: _only(catalog.example_input(name))))


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        model.name: model
        for model in (
            *(_classifier(name) for name in catalog.VISION),
            _ocr("pp_ocrv4_det", "PP-OCRv4 det", _text_page),
            _ocr("pp_ocrv4_rec", "PP-OCRv4 rec"),
            _ocr("pp_ocrv4_cls", "PP-OCR cls"),
        )
    }
)


@dataclass(frozen=True)
class PreparedModel:
    """A model whose Paddle files and input lie on disk, and that finds or makes its twins."""

    name: str
    title: str
    paddle: catalog.ModelPath
    input_name: str
    input_shape: tuple[int, ...]
    input_file: Path

    def onnx(self) -> Path:
        """Return the ONNX twin, whose input has exactly ``input_shape``.

        Raises:
            ConversionError: paddle2onnx is not installed or refuses the model.
        """
        twin = self._twin("onnx")
        arguments = [str(self.paddle.model), str(self.paddle.params), json.dumps(self.input_shape), str(twin)]
        return self._ensure(twin, "to_onnx.py", arguments)

    def lite(self, backend: str) -> Path:
        """Return the model's ``.lite`` file for one input shape and one thread, made anew in each run of the benchmark.

        Args:
            backend: the target; ``auto`` is x86.

        Raises:
            ConversionError: ``lite convert`` refuses the model.
        """
        file = self.input_file.with_suffix(".lite")
        if not file.exists():
            target = "x86" if backend == "auto" else backend
            shape = "x".join(str(size) for size in self.input_shape)
            options = ["--targets", target, "--threads", "1", "--input-shape", f"{self.input_name}={shape}"]
            command = [sys.executable, "-m", "lite_core", "convert", str(self.paddle.model), "-o", str(file), *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise ConversionError(f"lite convert refused {self.paddle.model}: {done.stderr.strip()[-500:]}")
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
        arguments = [str(self.paddle.model), str(self.paddle.params), str(optimizer), str(twin)]
        return self._ensure(twin, "to_paddle_lite.py", arguments)

    def _twin(self, suffix: str) -> Path:
        shape = "x".join(str(size) for size in self.input_shape)
        folder: Path = catalog.cache_folder() / "twins"
        return folder / f"{self.name}-{shape}.{suffix}"

    def _ensure(self, twin: Path, script: str, arguments: list[str]) -> Path:
        """Convert in a process of its own: the converters are native code and end the process as they please."""
        if twin.exists() and twin.stat().st_mtime >= self.paddle.model.stat().st_mtime:
            return twin
        twin.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, str(HERE / script), *arguments], capture_output=True, text=True)
        if done.returncode or not twin.exists():
            last_words = (done.stderr.strip() or done.stdout.strip())[-500:]
            raise ConversionError(f"{script} could not convert {self.paddle.model}: {last_words}")
        return twin


def prepare(model: Model, folder: Path) -> PreparedModel:
    """Make or find the model's Paddle files, and write its input into ``folder``.

    Raises:
        ModelUnavailableError: the Paddle files are missing and cannot be made here.
    """
    files = model.files()
    name, picture = model.picture()
    input_file = folder / f"{model.name}.npy"
    np.save(input_file, picture)
    return PreparedModel(model.name, model.title, files, name, picture.shape, input_file)
