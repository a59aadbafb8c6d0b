"""Written ONNX models, run with ONNX Runtime."""

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
    """Open a model with ONNX Runtime, without graph optimizations: the written nodes are the ones that run."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="written models are run with ONNX Runtime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = str(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_written(session: Any, inputs: Sequence[Array]) -> list[Array]:
    """Run a session on arrays of any element type of at least one byte; its NumPy interface supports fewer types."""
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
