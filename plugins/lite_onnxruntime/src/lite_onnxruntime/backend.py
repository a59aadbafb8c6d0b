"""The backend, which asks ONNX Runtime for each node if it is supported, and compiles partitions to its sessions."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from lite_core.backend import Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph, Node
from lite_onnxruntime.executable import OnnxRuntimeExecutable, open_session
from lite_onnxruntime.forkable import ForkableSession, import_onnxruntime
from lite_onnxruntime.onnx_models import onnx_model
from lite_onnxruntime.refusals import refusal
from lite_onnxruntime.single_node import single_node, without_sizes

__all__ = ["OnnxRuntimeBackend"]

#: Above host, whose references are slower, and below every other backend: this one is an oracle.
_SCORE = 0.5
_MAX_CACHED_ANSWERS = 4096


class OnnxRuntimeBackend:
    """A backend for ONNX's operators on the processor, in the element types that ONNX Runtime has kernels for."""

    name = "onnxruntime"

    def probe(self) -> Sequence[Device] | Unavailable:
        # NOTE: this must not import the packages: every session probes, and the import takes longer than a small model.
        for module, package in (("onnxruntime", "onnxruntime"), ("lite_onnx", "lite-onnx")):
            if importlib.util.find_spec(module) is None:
                return Unavailable(f"the package {package} is not installed", f"pip install {package}")
        from importlib import metadata  # every start imports this module, and this takes 15 ms that only a probe needs

        try:
            version = metadata.version("onnxruntime")
        except metadata.PackageNotFoundError:
            version = "of another distribution"  # onnxruntime-gpu and others contain the same module
        details = {"onnxruntime": version, "provider": "CPUExecutionProvider"}
        return [Device(self.name, name=f"ONNX Runtime {version} on the processor", score=_SCORE, details=details)]

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return the version of ONNX Runtime and its build."""
        onnxruntime = import_onnxruntime()
        return {"onnxruntime": onnxruntime.__version__, "build": onnxruntime.get_build_info()}

    def report(self) -> Sequence[str]:
        """Return the lines that ``lite doctor`` shows."""
        try:
            onnxruntime = import_onnxruntime()
        except ImportError as error:
            return [f"the package onnxruntime cannot be imported: {error}"]
        providers = ", ".join(onnxruntime.get_available_providers())
        return [f"onnxruntime {onnxruntime.__version__}: {onnxruntime.__file__}", f"its providers: {providers}"]

    def supports(self, node: Node, device: Device) -> Yes | No:
        reason = refusal(node)
        if reason is None:
            try:
                reason = _refusal_by_onnxruntime(onnx_model(single_node(node)))
            except LiteError as error:
                reason = f"{node.qualified_op} cannot be written as ONNX: {error}"
        return No(reason) if reason else Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        try:
            session = ForkableSession(lambda: _open(part.graph, options.threads))
        except LiteError:
            raise
        except Exception as error:  # ONNX Runtime raises a dozen types without a common base class
            raise ExecutionError(f"backend 'onnxruntime' cannot compile {part.name!r}: {_first_line(error)}") from error
        return OnnxRuntimeExecutable(session, part.graph)


def _open(graph: Graph, threads: int) -> Any:
    """Open an ONNX Runtime session for a graph; for errors see :func:`open_session`."""
    fuse = not _has_doubles(graph)
    try:
        return open_session(onnx_model(graph), threads, fuse=fuse)
    except Exception:  # ONNX Runtime raises a dozen types without a common base class
        if not any(node.op == "If" for scope in graph.walk() for node in scope.nodes):
            raise
        # ONNX Runtime also checks branches that are never run with these sizes, where a Squeeze of 2 elements may be.
        return open_session(onnx_model(without_sizes(graph)), threads, fuse=fuse)


def _has_doubles(graph: Graph) -> bool:
    """Return True for graphs with float64, for which fusions are disabled: they keep some numbers in float32."""
    return any(value.dtype is DType.FLOAT64 for value in graph.defined())


@lru_cache(_MAX_CACHED_ANSWERS)
def _refusal_by_onnxruntime(model: bytes) -> str:
    """Return the reason why ONNX Runtime does not open a model of one node; empty if it opens it."""
    try:
        open_session(model, threads=1)
    except Exception as error:  # ONNX Runtime raises a dozen types without a common base class
        return f"ONNX Runtime: {_first_line(error)}"
    return ""


def _first_line(error: Any) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
