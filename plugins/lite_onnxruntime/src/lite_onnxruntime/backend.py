"""The backend: which nodes ONNX Runtime takes, and its sessions for partitions."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any

from lite_core.backend import Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph, Node
from lite_onnxruntime.executable import OnnxRuntimeExecutable, open_session
from lite_onnxruntime.onnx_models import onnx_model
from lite_onnxruntime.refusals import refusal
from lite_onnxruntime.single_node import single_node

__all__ = ["OnnxRuntimeBackend"]

#: Above host, whose references are slower, and below every backend of Lite's own: this one is here to compare with.
_SCORE = 0.5
_MOST_ANSWERS = 4096


class OnnxRuntimeBackend:
    """Runs what ONNX Runtime's processor kernels can: ONNX's operators in the element types that these have."""

    name = "onnxruntime"

    def probe(self) -> Sequence[Device] | Unavailable:
        # NOTE: nothing is imported, which takes longer than loading a small model: every session asks for devices.
        for module, package in (("onnxruntime", "onnxruntime"), ("lite_onnx", "lite-onnx")):
            if importlib.util.find_spec(module) is None:
                return Unavailable(f"the package {package} is not installed", f"pip install {package}")
        try:
            version = metadata.version("onnxruntime")
        except metadata.PackageNotFoundError:
            version = "of another distribution"  # onnxruntime-gpu and others give the same module
        details = {"onnxruntime": version, "provider": "CPUExecutionProvider"}
        return [Device(self.name, name=f"ONNX Runtime {version} on the processor", score=_SCORE, details=details)]

    def report(self) -> Sequence[str]:
        """What ``lite doctor`` shows."""
        try:
            import onnxruntime
        except ImportError as error:
            return [f"the package onnxruntime cannot be imported: {error}"]
        providers = ", ".join(onnxruntime.get_available_providers())
        return [f"onnxruntime {onnxruntime.__version__}: {onnxruntime.__file__}", f"its providers: {providers}"]

    def supports(self, node: Node, device: Device) -> Yes | No:
        reason = refusal(node)
        if reason is None:
            try:
                reason = _refused(onnx_model(single_node(node)))
            except LiteError as error:
                reason = f"{node.qualified_op} cannot be written as ONNX: {error}"
        return No(reason) if reason else Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        try:
            session = open_session(onnx_model(part.graph), options.threads, fuse=not _has_doubles(part.graph))
        except LiteError:
            raise
        except Exception as error:  # of a dozen types, which have no other base class in common
            raise ExecutionError(f"backend 'onnxruntime' cannot compile {part.name!r}: {_first_line(error)}") from error
        return OnnxRuntimeExecutable(session, part.graph)


def _has_doubles(graph: Graph) -> bool:
    """NOTE: what ONNX Runtime fuses of float64 keeps some of its numbers in float32."""
    return any(value.dtype is DType.FLOAT64 for value in graph.defined())


@lru_cache(_MOST_ANSWERS)
def _refused(model: bytes) -> str:
    """Why ONNX Runtime does not open a model of one node; empty where it does."""
    try:
        open_session(model, threads=1)
    except Exception as error:  # of a dozen types, which have no other base class in common
        return f"ONNX Runtime: {_first_line(error)}"
    return ""


def _first_line(error: Any) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
