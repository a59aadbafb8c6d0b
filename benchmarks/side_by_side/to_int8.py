"""Quantize an ONNX model to int8 with ONNX Runtime's tools.

    python to_int8.py SOURCE SAMPLES SCHEME OPERATORS TARGET

``SAMPLES`` is an ``.npz`` file with the inputs of the calibration, each with the samples along its first axis.
``SCHEME`` is ``static`` (QDQ, activations uint8 with the scales of the samples, weights int8 with a scale for each
channel) or ``dynamic`` (QOperator, activations uint8 with scales of each run). ``OPERATORS`` names the operators to
quantize, separated by commas; empty for those that the tool chooses.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def samples(file: Path) -> Iterator[dict[str, Array]]:
    """Return the inputs of each sample, with a first axis of one."""
    with np.load(file) as stored:
        arrays = dict(stored)
    for i in range(len(next(iter(arrays.values())))):
        yield {name: array[i : i + 1] for name, array in arrays.items()}


def quantize(source: Path, sample_file: Path, scheme: str, operators: list[str] | None, target: Path) -> None:
    """Write the quantized copy of an ONNX model."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._samples = samples(sample_file)

        def get_next(self) -> dict[str, Array] | None:
            return next(self._samples, None)

    unfinished = target.with_suffix(".unfinished.onnx")
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        if scheme == "dynamic":
            quantization.quantize_dynamic(
                prepared, unfinished, per_channel=True, weight_type=quantization.QuantType.QInt8,
                op_types_to_quantize=operators,
            )  # fmt: skip
        else:
            quantization.quantize_static(
                prepared, unfinished, Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
                op_types_to_quantize=operators,
            )  # fmt: skip
    os.replace(unfinished, target)


if __name__ == "__main__":
    paths = [Path(sys.argv[i]) for i in (1, 2, 5)]
    quantize(paths[0], paths[1], sys.argv[3], sys.argv[4].split(",") if sys.argv[4] else None, paths[2])
