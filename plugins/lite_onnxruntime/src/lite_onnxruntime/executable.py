"""The executable: an ONNX Runtime session whose tensors are bound by address, without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph
from lite_onnxruntime.forkable import ForkableSession, import_onnxruntime
from lite_onnxruntime.stoppable import run_stoppably

__all__ = ["OnnxRuntimeExecutable", "open_session"]

_FATAL_ERRORS_ONLY = 4
#: This fusion turns zeros that a Pad puts around a MaxPool's input into padding of the MaxPool, which ignores them.
_WRONG_FUSIONS = ["Pad_Fusion"]
#: ONNX's numbers of element types that NumPy does not have; ONNX Runtime accepts the others as NumPy types.
_ONNX_NUMBERS = {
    DType.BFLOAT16: 16,
    DType.FLOAT8E4M3FN: 17,
    DType.FLOAT8E4M3FNUZ: 18,
    DType.FLOAT8E5M2: 19,
    DType.FLOAT8E5M2FNUZ: 20,
}


def open_session(model: bytes, threads: int, *, fuse: bool = True) -> Any:
    """Open an ONNX Runtime session for a model.

    Args:
        model: the model's bytes.
        threads: the number of threads it may use.
        fuse: False to disable fusions and other graph optimizations.

    Raises:
        Exception: one of ONNX Runtime's many types: it has no kernel, or the model is not valid for it.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ERRORS_ONLY  # others are exceptions, which say the same
    if not fuse:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Spinning threads would take processor time from the other backends of a session.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # By default, a product with weights that are dequantized rounds its left operand to 8 bits.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=_WRONG_FUSIONS
    )


class OnnxRuntimeExecutable:
    """An executable that runs a partition in an ONNX Runtime session, also in several threads at once.

    Args:
        session: the ONNX Runtime session of the graph.
        graph: the partition's graph.
    """

    scratch_bytes = 0

    def __init__(self, session: ForkableSession, graph: Graph) -> None:
        self._forkable = session
        nodes = (node for scope in graph.walk() for node in scope.nodes)
        self._loops = [node.describe() for node in nodes if node.op in ("Loop", "Scan")]
        self._inputs = [value.name for value in graph.inputs]
        self._outputs = [value.name for value in graph.outputs]

    @property
    def _session(self) -> Any:
        return self._forkable.get()

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        binding = self._session.io_binding()
        for name, buffer in zip(self._inputs, inputs):
            _bind(binding.bind_input, name, buffer.data)
        for name, buffer in zip(self._outputs, outputs):
            if buffer.data is None:  # its shape depends on data
                binding.bind_output(name, "cpu")
            else:
                _bind(binding.bind_output, name, buffer.data)
        try:
            if self._loops:
                session = self._session
                run_stoppably(
                    lambda options: session.run_with_iobinding(binding, options), lambda: ", ".join(self._loops)
                )
            else:
                self._session.run_with_iobinding(binding)
        except LiteError:
            raise
        except Exception as error:  # ONNX Runtime raises a dozen types without a common base class
            raise ExecutionError(f"backend 'onnxruntime': {error}") from error
        for result, buffer in zip(binding.get_outputs(), outputs):
            if buffer.data is None:
                _copy(result, buffer)


def _bind(bind: Any, name: str, array: np.ndarray[Any, Any]) -> None:
    element_type = _ONNX_NUMBERS.get(DType.of(array), array.dtype.type)
    bind(name, "cpu", 0, element_type, array.shape, array.ctypes.data)


def _copy(result: Any, buffer: Buffer) -> None:
    """Copy a result that ONNX Runtime has allocated, also of element types that NumPy does not have."""
    shape = tuple(result.shape())
    storage = buffer.allocate(shape)
    if storage.nbytes:
        ctypes.memmove(storage.ctypes.data, result.data_ptr(), storage.nbytes)
