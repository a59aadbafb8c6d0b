"""Graphs written as ONNX, run by ONNX Runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core.ir import DType
from lite_onnx.reader.element_types import element_type, onnx_number

__all__ = ["open_written", "run_written"]

Array = np.ndarray[Any, Any]


def open_written(model: Path | bytes) -> Any:
    """ONNX Runtime's session for a model, without its own rewriting of the graph: what was written is what runs."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is what written models are run by")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = str(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_written(session: Any, inputs: Sequence[Array]) -> list[Array]:
    """The outputs, of any element type with a byte or more: NumPy's way in and out knows fewer."""
    binding = session.io_binding()
    for declared, array in zip(session.get_inputs(), inputs):
        number = onnx_number(array.dtype)
        binding.bind_input(declared.name, "cpu", 0, number, array.shape, array.ctypes.data)
    for declared in session.get_outputs():
        binding.bind_output(declared.name, "cpu")
    session.run_with_iobinding(binding)
    return [_copied(value) for value in binding.get_outputs()]


def _copied(value: Any) -> Array:
    dtype: DType = element_type(value.element_type())
    array = np.zeros(prod(value.shape()), dtype.numpy)
    if array.nbytes:
        ctypes.memmove(array.ctypes.data, value.data_ptr(), array.nbytes)
    return array.reshape(value.shape())
