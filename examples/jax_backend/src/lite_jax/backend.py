"""The backend: its device, what it supports, and how partitions become executables; and the hook of the plugin."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from lite_compiler.staging import StagedExecutable, can_compile_whole
from lite_core import Device, No, Unavailable, Yes
from lite_core import backend as contract
from lite_core.ir import Graph, Node
from lite_core.ops.helpers import data_dependent_nodes
from lite_core.ops.infer import infer_graph
from lite_core.plugins import hookimpl

__all__ = ["JaxBackend", "lite_backends"]

LITE_API_VERSION = 1

#: Raised when the content of saved programs, or the kernels, change.
_SAVED_FORMAT = 1
#: Above host, whose references are slower, and below backends with kernels of their own.
_SCORE = 0.6


class JaxBackend(contract.ProvidesMemory, contract.RestoresState, contract.StatesCompatibility):
    """Compiles partitions for the first device that JAX finds; JAX_PLATFORMS chooses another kind.

    JAX is imported when it is needed: every session probes, and the import takes longer than a small model.
    """

    name = "jax"

    def probe(self) -> Sequence[Device] | Unavailable:
        if importlib.util.find_spec("jax") is None or importlib.util.find_spec("jaxlib") is None:
            return Unavailable("the package jax is not installed", "pip install jax")
        return [Device(self.name, name=f"JAX {_versions()['jax']}", score=_SCORE, details=_versions())]

    def stack(self, device: Device) -> Mapping[str, str]:
        """Return what is under the backend, for reports of the conformance suite."""
        return {**_versions(), "platform": _jax_device().platform}

    def memory(self, device: Device) -> contract.Memory:
        from lite_jax.memory import JaxMemory

        return JaxMemory(_jax_device())

    def supports(self, node: Node, device: Device) -> Yes | No:
        from lite_jax.program import refusal

        return No(reason) if (reason := refusal(node)) else Yes()

    def compile(self, part: contract.Partition, device: Device, options: contract.Options) -> contract.Executable:
        from lite_jax.program import Folded, Program

        def compile_graph(graph: Graph) -> contract.Executable:
            return Program(Folded(graph), _jax_device())

        if can_compile_whole(part.graph, data_dependent_nodes):
            return compile_graph(part.graph)
        return StagedExecutable(part.graph, self.memory(device), compile_graph, data_dependent_nodes)

    def compatibility(self, device: Device, options: contract.Options) -> str:
        """The text that must match before a saved program is used: JAX promises no more than its version."""
        return f"programs {_SAVED_FORMAT}, {self.stack(device)}"

    def restore(
        self, pieces: Sequence[memoryview], part: contract.Partition, device: Device, options: contract.Options
    ) -> contract.Executable | contract.Stale:
        from lite_jax.program import Folded, restored

        graph = part.graph.copy()
        infer_graph(graph)  # the types between inputs and outputs may still be symbolic here
        return restored(pieces, Folded(graph), _jax_device())


def _versions() -> dict[str, str]:
    from importlib import metadata  # every start imports this module, and this takes 15 ms

    return {package: metadata.version(package) for package in ("jax", "jaxlib")}


def _jax_device() -> Any:
    import jax

    return jax.devices()[0]


@hookimpl
def lite_backends() -> list[contract.Backend]:
    return [JaxBackend()]
