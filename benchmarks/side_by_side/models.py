"""The models that the engines are compared on, and the files that each engine reads.

The eleven Paddle models and their pictures are those of ``tests/models/catalog.py``. Their ONNX and Paddle-Lite copies
are converted from the Paddle files (``to_onnx.py``, ``to_paddle_lite.py``) and kept in the same cache. The ONNX models
are those of ``tests/models/onnx_catalog.py``; their copies have the inputs' shapes written into them
(``fix_shapes.py``).
"""

from __future__ import annotations

import hashlib
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

from side_by_side import machine  # noqa: E402

__all__ = ["GROUPS", "MODELS", "ConversionError", "Model", "ModelOnDisk", "ModelUnavailableError", "set_up"]

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]

# In float32 the engines differ by up to 5e-5 of the output's range on these models; more than this is wrong.
MAX_DIFFERENCE = 1e-3
# For models with 8-bit activations: some engines round where others compute in float32; 1/255 is one step.
MAX_DIFFERENCE_QUANTIZED = 2e-2


class ConversionError(Exception):
    """A model could not be converted; the message has the end of the converter's output."""


@dataclass(frozen=True)
class Model:
    """A model of which one output is compared.

    Attributes:
        name: name in ``--models``.
        title: name in tables and charts.
        files: function that makes or finds the Paddle program and its parameters, or the ONNX file.
        inputs: function that makes the inputs, by name.
        max_difference: the largest difference between engines that counts as correct, as a share of the output's
            range.
    """

    name: str
    title: str
    files: Callable[[], catalog.ModelPath | Path]
    inputs: Callable[[], Inputs]
    max_difference: float = MAX_DIFFERENCE


def _classifier(name: str) -> Model:
    entry = f"{name}-legacy"
    return Model(name, name, lambda: catalog.ensure(entry), lambda: _first_picture(catalog.example_input(entry)))


def _first_picture(inputs: Inputs) -> Inputs:
    return {name: np.ascontiguousarray(array[:1]) for name, array in inputs.items()}


def _text_page() -> Inputs:
    """Return a page of text of 640 x 640 pixels, the size at which PP-OCR's detector is used."""
    pages = _first_picture(catalog.example_input("pp_ocrv4_det"))
    return {name: np.ascontiguousarray(np.tile(page, (1, 1, 3, 2))[:, :, :640, :640]) for name, page in pages.items()}


def _ocr(name: str, title: str, inputs: Callable[[], Inputs] | None = None) -> Model:
    return Model(
        name, title, lambda: catalog.ensure(name), inputs or (lambda: _first_picture(catalog.example_input(name)))
    )


def _onnx(name: str, entry: onnx_catalog.OnnxModel) -> Model:
    limit = MAX_DIFFERENCE_QUANTIZED if entry.quantized else MAX_DIFFERENCE
    find, inputs = partial(onnx_catalog.ensure, name), partial(entry.inputs, **entry.sizes[0])
    return Model(f"onnx_{name}", entry.title, find, inputs, limit)


_PADDLE = (
    *(_classifier(name) for name in catalog.VISION),
    _ocr("pp_ocrv4_det", "PP-OCRv4 det", _text_page),
    _ocr("pp_ocrv4_rec", "PP-OCRv4 rec"),
    _ocr("pp_ocrv4_cls", "PP-OCR cls"),
)
_ONNX = tuple(_onnx(name, entry) for name, entry in onnx_catalog.MODELS.items())
MODELS: Mapping[str, Model] = MappingProxyType({model.name: model for model in (*_PADDLE, *_ONNX)})
#: Values of ``--models`` that stand for several models.
GROUPS = MappingProxyType({"paddle": [m.name for m in _PADDLE], "onnx": [m.name for m in _ONNX]})


#: The reason of each refusal in this process, by the file that was to be made.
_refused: dict[Path, str] = {}


@dataclass(frozen=True)
class ModelOnDisk:
    """A model whose files and inputs are on disk, and which finds or makes its converted copies.

    Attributes:
        source: its original files: a Paddle program and its parameters, or an ONNX file.
        shapes: shapes of the inputs, by name.
        input_file: an ``.npz`` file with the inputs.
    """

    name: str
    title: str
    source: catalog.ModelPath | Path
    shapes: Mapping[str, tuple[int, ...]]
    input_file: Path
    max_difference: float

    @property
    def files(self) -> tuple[str, ...]:
        """Return the original files."""
        own = self.source
        return (str(own),) if isinstance(own, Path) else (str(own.model), str(own.params))

    @property
    def is_paddle(self) -> bool:
        return not isinstance(self.source, Path)

    def onnx(self) -> Path:
        """Return the ONNX copy, whose inputs have exactly ``shapes``.

        Raises:
            ConversionError: paddle2onnx is not installed or rejects the model.
        """
        target = self._converted_path("onnx")
        if not self.is_paddle:
            return self._ensure(target, "fix_shapes.py", [*self.files, json.dumps(self.shapes), str(target)])
        (shape,) = self.shapes.values()
        return self._ensure(target, "to_onnx.py", [*self.files, json.dumps(shape), str(target)])

    def exact(self) -> Path:
        """Return the ``.npy`` file of the first output as the references compute it in float64.

        Raises:
            ConversionError: the references cannot compute it.
        """
        inputs = hashlib.sha256(self.input_file.read_bytes()).hexdigest()[:12]
        target = self._converted_path(f"{inputs}.npy")
        return self._ensure(target, "exact.py", [self.files[0], str(self.input_file), str(target)])

    def iree(self, python: Path, processor: str) -> Path:
        """Return the copy that IREE has compiled from the ONNX copy.

        Args:
            python: the interpreter whose environment contains IREE's tools.
            processor: LLVM's name of a processor; ``host`` is this one.

        Raises:
            ConversionError: paddle2onnx or IREE rejects the model.
        """
        source = self.onnx()
        target = source.with_name(f"{source.stem}-{machine.own_file_stem()}-{processor}.vmfb")
        return self._ensure(target, "to_iree.py", [str(source), processor, str(target)], python)

    def lite(self, backend: str, processor: str = "") -> Path:
        """Return the model's ``.lite`` file for these shapes and one thread; each run of the benchmark makes a new one.

        Args:
            backend: the target; ``auto`` is x86.
            processor: the processor to compile for, as ``lite convert --cpu`` takes it; by default this one.

        Raises:
            ConversionError: ``lite convert`` rejects the model.
        """
        file = self.input_file.with_name(f"{self.input_file.stem}{processor}.lite")
        if not file.exists():
            target = "x86" if backend == "auto" else backend
            options = ["--targets", target, "--threads", "1", *(["--cpu", processor] if processor else [])]
            for name, shape in self.shapes.items():
                if shape:
                    options += ["--input-shape", f"{name}={'x'.join(map(str, shape))}"]
            command = [sys.executable, "-m", "lite_core", "convert", self.files[0], "-o", str(file), *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise ConversionError(f"lite convert refused {self.files[0]}: {done.stderr.strip()[-500:]}")
        return file

    def paddle_lite(self, python: Path) -> Path:
        """Return the Paddle-Lite copy.

        Args:
            python: the interpreter whose folder contains ``paddle_lite_opt``.

        Raises:
            ConversionError: paddlepaddle is not installed, or ``paddle_lite_opt`` rejects the model.
        """
        target = self._converted_path("nb")
        optimizer = python.parent / "paddle_lite_opt"
        arguments = [*self.files, str(optimizer), str(target)]
        return self._ensure(target, "to_paddle_lite.py", arguments)

    def _converted_path(self, suffix: str) -> Path:
        shapes = "_".join("x".join(map(str, shape)) for shape in self.shapes.values() if shape)
        folder: Path = catalog.cache_folder() / "twins"
        return folder / f"{self.name.partition(',')[0]}-{shapes}.{suffix}"

    def _ensure(self, target: Path, script: str, arguments: list[str], python: Path | None = None) -> Path:
        """Convert in a separate process: the converters are native code and may end the process.

        A converter that needs a minute to refuse a model is not asked again for the next condition.
        """
        if target in _refused:
            raise ConversionError(_refused[target])
        if target.exists() and target.stat().st_mtime >= Path(self.files[0]).stat().st_mtime:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [str(python or sys.executable), str(HERE / script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not target.exists():
            ending = (done.stderr.strip() or done.stdout.strip())[-500:]
            _refused[target] = f"{script} could not convert {self.files[0]}: {ending}"
            raise ConversionError(_refused[target])
        return target


def set_up(model: Model, folder: Path) -> ModelOnDisk:
    """Make or find the model's files, and write its inputs into ``folder``.

    Raises:
        ModelUnavailableError: the files are missing and cannot be made here.
    """
    source, inputs = model.files(), model.inputs()
    input_file = folder / f"{model.name}.npz"
    np.savez(input_file, **inputs)
    shapes = {name: array.shape for name, array in inputs.items()}
    return ModelOnDisk(model.name, model.title, source, shapes, input_file, model.max_difference)
