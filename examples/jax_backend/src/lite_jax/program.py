"""Partitions as JAX programs: each is one function, which JAX traces and XLA compiles for known shapes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
from jax import export

from lite_core.backend import Buffer, Executable, SavesState, Stale
from lite_core.ir import Graph
from lite_core.ops.helpers import fold_constants, graph_digest, number_inputs
from lite_jax import elementwise, layers, movement  # noqa: F401 - they register the kernels
from lite_jax.kernels import apply, refusal

__all__ = ["Folded", "Program", "refusal", "restored"]

_SIZE = hashlib.sha256().digest_size


class Folded:
    """A partition before it is traced: without nodes whose results are known, and with its weights and its digest."""

    def __init__(self, graph: Graph) -> None:
        self.graph = fold_constants(graph)
        numbers = {node.inputs[i] for node in self.graph.nodes for i in number_inputs(node)}
        #: The constants that are arguments of the program, so that it is saved without them; all but numbers.
        self.weights = {value: array for value, array in self.graph.constants.items() if value not in numbers}
        self.digest = bytes.fromhex(graph_digest(self.graph))

    def trace(self, inputs: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """Compute the outputs of the graph; JAX calls this function once, with tracers."""
        values = {**self.graph.constants, **dict(zip(self.graph.inputs, inputs)), **dict(zip(self.weights, weights))}
        for node in self.graph.nodes:
            results = apply(node, [None if v is None else values[v] for v in node.inputs])
            values.update((v, r) for v, r in zip(node.outputs, results) if v is not None)
        return [jax.numpy.asarray(values[v]) for v in self.graph.outputs]


class Program(Executable, SavesState):
    """A compiled partition.

    Args:
        part: the partition; all shapes are known.
        device: the JAX device.
        exported: the traced program if it was saved; else the partition is traced.
    """

    scratch_bytes = 0  # XLA allocates what it needs

    def __init__(self, part: Folded, device: Any, exported: export.Exported | None = None) -> None:
        self._digest = part.digest
        with jax.enable_x64(True), jax.default_device(device), jax.default_matmul_precision("highest"):
            self._weights = [jax.device_put(array, device) for array in part.weights.values()]
            self._inputs = [jax.ShapeDtypeStruct(v.shape, v.dtype.numpy) for v in part.graph.inputs]
            self._traced = jax.jit(part.trace if exported is None else exported.call)
            self._compiled = self._traced.lower(self._inputs, self._weights).compile()

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        with jax.enable_x64(True):
            results = self._compiled([buffer.data.array for buffer in inputs], self._weights)
        for buffer, result in zip(outputs, jax.block_until_ready(results)):
            data = buffer.allocate(result.shape) if buffer.data is None else buffer.data
            data.array = result

    def save(self) -> list[bytes]:
        with jax.enable_x64(True):
            code = bytes(export.export(self._traced)(self._inputs, self._weights).serialize())
        return [self._digest + hashlib.sha256(code).digest() + code]


def restored(pieces: Sequence[memoryview], part: Folded, device: Any) -> Program | Stale:
    """Return a saved program, or the reason why the pieces do not fit the partition."""
    content = bytes(pieces[0]) if len(pieces) == 1 else b""
    digest, checksum, code = content[:_SIZE], content[_SIZE : 2 * _SIZE], content[2 * _SIZE :]
    if hashlib.sha256(code).digest() != checksum:
        return Stale("this is no saved program")
    if digest != part.digest:
        return Stale("it was saved for another partition")
    return Program(part, device, export.deserialize(bytearray(code)))
