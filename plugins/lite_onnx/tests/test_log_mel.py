"""Log-mel front ends of speech models, compared with float64.

Lite computes STFT as a product with a matrix whose angles are reduced before they are rounded. For 400 elements, a
common length, its spectra are fifty times as close to float64 as those of ONNX Runtime, whose transform of lengths that
are no powers of two accumulates rounding errors. The logarithm of a band with little energy shows the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from runtime_models import run_by_onnxruntime
from small_models import load, make, node, value

Array = np.ndarray[Any, Any]

RATE, STEP, BANDS = 16000, 160, 80
#: The smallest energy, below which silence is cut off.
FLOOR = 1e-5


def _window(length: int) -> Array:
    return np.hanning(length + 1)[:-1].astype(np.float32)


def _signal(kind: str) -> Array:
    seconds = np.arange(RATE) / RATE
    random = np.random.default_rng(0).standard_normal(RATE)
    signals = {
        "noise": random * 0.1,
        "chirp": np.sin(2 * np.pi * (100 * seconds + 1500 * seconds**2)) * 0.5,
        "tone": np.sin(2 * np.pi * 440 * seconds) * 0.5 + random * 1e-4,
    }
    return signals[kind].astype(np.float32)


def _by_stft(length: int) -> onnx.ModelProto:
    nodes = [
        node("STFT", ["x", "step", "window"], ["spectrum"]),
        node("Mul", ["spectrum", "spectrum"], ["squares"]),
        node("ReduceSum", ["squares", "last"], ["power"], keepdims=0),
        node("MelWeightMatrix", ["bands", "length", "rate", "low", "high"], ["matrix"]),
        node("MatMul", ["power", "matrix"], ["energy"]),
        node("Max", ["energy", "floor"], ["cut"]),
        node("Log", ["cut"], ["y"]),
    ]
    constants = {
        "step": np.array(STEP),
        "window": _window(length),
        "last": np.array([-1]),
        "bands": np.array(BANDS),
        "length": np.array(length),
        "rate": np.array(RATE),
        "low": np.array(20, np.float32),
        "high": np.array(7600, np.float32),
        "floor": np.array(FLOOR, np.float32),
    }
    return make(nodes, [value("x", (1, "samples", 1))], ["y", "spectrum", "matrix"], constants)


def _by_convolution(length: int, matrix: Array) -> onnx.ModelProto:
    angles = 2 * np.pi * (np.outer(np.arange(length // 2 + 1), np.arange(length)) % length) / length
    nodes = [
        node("Conv", ["x", "cosines"], ["real"], strides=[STEP]),
        node("Conv", ["x", "sines"], ["imaginary"], strides=[STEP]),
        node("Mul", ["real", "real"], ["a"]),
        node("Mul", ["imaginary", "imaginary"], ["b"]),
        node("Add", ["a", "b"], ["power"]),
        node("MatMul", ["matrix", "power"], ["energy"]),
        node("Max", ["energy", "floor"], ["cut"]),
        node("Log", ["cut"], ["y"]),
    ]
    constants = {
        "cosines": (np.cos(angles) * _window(length)).astype(np.float32)[:, np.newaxis],
        "sines": (-np.sin(angles) * _window(length)).astype(np.float32)[:, np.newaxis],
        "matrix": np.ascontiguousarray(matrix.T),
        "floor": np.array(FLOOR, np.float32),
    }
    return make(nodes, [value("x", (1, 1, "samples"))], ["y"], constants)


def _in_float64(x: Array, length: int, matrix: Array) -> tuple[Array, Array]:
    """Return the spectrum [frames, frequencies] and the log-mel energies [frames, bands]."""
    frames = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), length)[::STEP]
    spectrum = np.fft.rfft(frames * _window(length).astype(np.float64))
    return spectrum, np.log(np.maximum(np.abs(spectrum) ** 2 @ matrix.astype(np.float64), np.float32(FLOOR)))


@pytest.mark.parametrize("length", [400, 512])
@pytest.mark.parametrize("kind", ["noise", "chirp", "tone"])
def test_stft_is_closer_to_float64_than_onnxruntime(kind: str, length: int, tmp_path: Path) -> None:
    x, model = _signal(kind), _by_stft(length)
    inputs = {"x": x[np.newaxis, :, np.newaxis]}
    found, other = load(model, tmp_path).run(inputs), run_by_onnxruntime(model, inputs)
    np.testing.assert_array_equal(found["matrix"], other["matrix"])
    spectrum, energies = _in_float64(x, length, found["matrix"])
    parts = np.stack([spectrum.real, spectrum.imag], axis=-1)
    errors = [np.sqrt(np.mean((results["spectrum"][0] - parts) ** 2)) for results in (found, other)]
    assert errors[0] < (errors[1] / 10 if length == 400 else errors[1])
    assert errors[0] < 1e-7 * np.abs(spectrum).max()
    logarithms = [np.sqrt(np.mean((results["y"][0] - energies) ** 2)) for results in (found, other)]
    # Transforms of powers of two have few steps: the errors of both are those of single roundings.
    assert logarithms[0] < (logarithms[1] / 2 if length == 400 else logarithms[1] * 2)


@pytest.mark.parametrize("length", [400, 512])
@pytest.mark.parametrize("kind", ["noise", "chirp", "tone"])
def test_convolutions_are_as_close_to_float64_as_onnxruntime(kind: str, length: int, tmp_path: Path) -> None:
    """Both sum float32 products in some order: neither error may be far above the other."""
    x = _signal(kind)
    matrix = load(_by_stft(length), tmp_path).run({"x": x[np.newaxis, :, np.newaxis]})["matrix"]
    _, energies = _in_float64(x, length, matrix)
    model, inputs = _by_convolution(length, matrix), {"x": x[np.newaxis, np.newaxis]}
    found, other = load(model, tmp_path).run(inputs)["y"], run_by_onnxruntime(model, inputs)["y"]
    errors = [np.sqrt(np.mean((y[0].T - energies) ** 2)) for y in (found, other)]
    assert errors[0] <= 2 * errors[1]
