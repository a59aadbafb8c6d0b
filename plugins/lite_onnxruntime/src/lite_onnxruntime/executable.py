"""A session of ONNX Runtime's as an executable: tensors are bound by their addresses, so that nothing is copied."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph

__all__ = ["OnnxRuntimeExecutable", "open_session"]

_ERRORS_ONLY = 3
#: Zeros that a Pad puts round a MaxPool's input become padding of the MaxPool, which ignores them.
_WRONG_FUSIONS = ["Pad_Fusion"]
#: What ONNX numbers element types as that NumPy lacks; ONNX Runtime takes the others by their NumPy types.
_ONNX_NUMBERS = {
    DType.BFLOAT16: 16,
    DType.FLOAT8E4M3FN: 17,
    DType.FLOAT8E4M3FNUZ: 18,
    DType.FLOAT8E5M2: 19,
    DType.FLOAT8E5M2FNUZ: 20,
}


def open_session(model: bytes, threads: int, *, fuse: bool = True) -> Any:
    """ONNX Runtime's session for a model.

    Args:
        model: its bytes.
        threads: how many it may use.
        fuse: whether it may put operators together into its own.

    Raises:
        Exception: of ONNX Runtime's many types: it has no kernel, or the model is not valid for it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    if not fuse:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Threads that wait by spinning take the processor from the other backends of a session.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=_WRONG_FUSIONS
    )


class OnnxRuntimeExecutable:
    """Runs a partition in an ONNX Runtime session; by several threads at once, as its sessions allow.

    Args:
        session: for the graph.
        graph: the partition's.
    """

    scratch_bytes = 0

    def __init__(self, session: Any, graph: Graph) -> None:
        self._session = session
        self._inputs = [value.name for value in graph.inputs]
        self._outputs = [value.name for value in graph.outputs]

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        binding = self._session.io_binding()
        for name, buffer in zip(self._inputs, inputs):
            _bind(binding.bind_input, name, buffer.data)
        for name, buffer in zip(self._outputs, outputs):
            if buffer.data is None:  # its size is known when it is computed
                binding.bind_output(name, "cpu")
            else:
                _bind(binding.bind_output, name, buffer.data)
        try:
            self._session.run_with_iobinding(binding)
        except Exception as error:  # of a dozen types, which have no other base class in common
            raise ExecutionError(f"backend 'onnxruntime': {error}") from error
        for result, buffer in zip(binding.get_outputs(), outputs):
            if buffer.data is None:
                _copy(result, buffer)


def _bind(bind: Any, name: str, array: np.ndarray[Any, Any]) -> None:
    element_type = _ONNX_NUMBERS.get(DType.of(array), array.dtype.type)
    bind(name, "cpu", 0, element_type, array.shape, array.ctypes.data)


def _copy(result: Any, buffer: Buffer) -> None:
    """A result that ONNX Runtime has allocated, of any element type, also those that NumPy has not."""
    shape = tuple(result.shape())
    storage = buffer.allocate(shape)
    if storage.nbytes:
        ctypes.memmove(storage.ctypes.data, result.data_ptr(), storage.nbytes)
