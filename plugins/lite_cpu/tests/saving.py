"""Helpers that save and restore compiled programs, and example graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from levels import LevelBackend, backend_for
from random_graphs import Example

from lite_core import GraphBuilder
from lite_core.backend import Buffer, Device, Options, Partition, Stale
from lite_core.ir import DType, Graph, SavedWeights, TensorType, Value
from lite_core.memory import HostMemory
from lite_cpu.aligned import aligned_empty
from lite_cpu.executable import CpuExecutable
from lite_cpu.machine import Machine
from lite_cpu.saved.frame import read_frame

__all__ = [
    "DEVICE",
    "GRAPHS",
    "Sketch",
    "aligned",
    "assert_same",
    "buffers",
    "compiled",
    "content",
    "convolutions",
    "refusal",
    "restored",
    "run",
    "saved",
    "split",
    "transformer",
    "views",
]

Array = np.ndarray[Any, Any]

_Piece = TypeVar("_Piece", bytes, memoryview, bytes | memoryview | SavedWeights)

DEVICE, HOST = Device("level"), HostMemory()


def compiled(machine: Machine, graph: Graph, **options: Any) -> CpuExecutable:
    executable = backend_for(machine).compile(Partition("part", graph), DEVICE, Options(**options))
    assert isinstance(executable, CpuExecutable)
    return executable


def saved(executable: CpuExecutable) -> list[memoryview]:
    """Return the pieces that an executable saves, in the form in which a model file returns them."""
    return [aligned(content(piece)) for piece in executable.save()]


def content(piece: bytes | memoryview | SavedWeights) -> bytes | memoryview:
    """Return the bytes of a piece."""
    return piece.data if isinstance(piece, SavedWeights) else piece


def split(pieces: Sequence[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """Return the pieces of the program (its description, the runtime, kernels) and those of its arrays."""
    kernels = read_frame(memoryview(content(pieces[0]))).description["kernels"]
    return [*pieces[: 2 + len(kernels)]], [*pieces[2 + len(kernels) :]]


def aligned(piece: bytes | memoryview) -> memoryview:
    """Return a read-only copy that is aligned to 64 bytes."""
    memory = aligned_empty((len(piece),), np.uint8)
    memory[:] = bytearray(piece)
    return memory.data.toreadonly()


def restored(machine: Machine, pieces: Sequence[memoryview], graph: Graph, **options: Any) -> CpuExecutable:
    """Restore an executable with a new backend, which has no compiled kernels and no packed weights."""
    answer = LevelBackend(machine).restore(pieces, Partition("part", graph), DEVICE, Options(**options))
    assert isinstance(answer, CpuExecutable), answer
    return answer


def refusal(machine: Machine, pieces: Sequence[memoryview], graph: Graph, **options: Any) -> str:
    """Return the reason why pieces cannot be restored."""
    answer = LevelBackend(machine).restore(pieces, Partition("part", graph), DEVICE, Options(**options))
    assert isinstance(answer, Stale)
    return answer.reason


def buffers(
    executable: CpuExecutable, graph: Graph, arrays: dict[str, Array]
) -> tuple[list[Buffer], list[Buffer], Buffer]:
    """Return inputs, outputs and scratch memory of a run."""
    scratch = aligned_empty((executable.scratch_bytes,), np.uint8)
    return (
        [Buffer(v.type, HOST, arrays[v.name]) for v in graph.inputs],
        [Buffer(v.type, HOST, HOST.allocate(v.type)) for v in graph.outputs],
        Buffer(TensorType.of_array(scratch), HOST, scratch),
    )


def run(executable: CpuExecutable, graph: Graph, arrays: dict[str, Array]) -> list[Array]:
    inputs, outputs, scratch = buffers(executable, graph, arrays)
    executable.run(inputs, outputs, scratch)
    return [buffer.data for buffer in outputs]


def assert_same(machine: Machine, example: Example, **options: Any) -> None:
    """Assert that the restored executable and the compiled one have bitwise equal results."""
    graph = example.graph
    executable = compiled(machine, graph, **options)
    again = restored(machine, saved(executable), graph, **options)
    assert again.scratch_bytes == executable.scratch_bytes
    expected = run(executable, graph, example.inputs)
    for one, other in zip(expected, run(again, graph, example.inputs)):
        assert one.tobytes() == other.tobytes()


# **** graphs ****


class Sketch:
    """An example under construction, with seeded random inputs and constants."""

    def __init__(self) -> None:
        self.b = GraphBuilder("saved")
        self.inputs: dict[str, Array] = {}

    def input(self, *shape: int, dtype: str = "float32") -> Value:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self._numbers(dtype, shape)
        return self.b.input(name, dtype, shape)

    def constant(self, *shape: int, dtype: str = "float32") -> Value:
        return self.b.constant(self._numbers(dtype, shape))

    def add(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        return self.b.add(op, inputs, attributes)

    def done(self, *outputs: Value) -> Example:
        for number, value in enumerate(outputs):
            self.b.output(value, f"y{number}")
        return Example(self.b.build(), self.inputs)

    def _numbers(self, dtype: str, shape: tuple[int, ...]) -> Array:
        random = np.random.default_rng(len(self.inputs) + sum(shape))
        if DType(dtype).is_integer:
            return random.integers(0, 100, shape).astype(dtype)
        return (0.3 * random.standard_normal(shape)).astype(DType(dtype).numpy)


def convolutions() -> Example:
    """Return Winograd, pointwise, strided, depthwise and transposed convolutions, with pooling and softmax."""
    g = Sketch()
    x = g.add("Conv", g.input(1, 3, 32, 32), g.constant(16, 3, 3, 3), g.constant(16), pads=(1, 1, 1, 1))
    y = g.add("Relu", g.add("Conv", x, g.constant(16, 16, 3, 3), pads=(1, 1, 1, 1)))
    y = g.add("Add", x, g.add("Conv", y, g.constant(16, 16, 1, 1), g.constant(16)))
    y = g.add("HardSwish", g.add("Conv", y, g.constant(16, 1, 5, 5), group=16, pads=(2, 2, 2, 2), strides=(2, 2)))
    y = g.add("ConvTranspose", y, g.constant(16, 8, 2, 2), strides=(2, 2))
    y = g.add("MaxPool", y, kernel_shape=(3, 3), strides=(2, 2))
    return g.done(g.add("Softmax", g.add("ReduceMean", y, g.b.ints(2, 3), keepdims=0), axis=-1))


def transformer() -> Example:
    """Return products with constants and of two inputs, normalization, softmax, gathered rows, an unpacked constant."""
    g = Sketch()
    rows = g.add("Gather", g.constant(50, 24), g.b.ints(3, 1, 4, 1, 5), axis=0)
    x = g.add("Add", g.input(2, 5, 24), rows)
    x = g.add("LayerNormalization", x, g.constant(24), g.constant(24), axis=-1)
    query, key, value = (
        g.add("Add", g.add("MatMul", x, g.constant(24, 24 + n)), g.constant(24 + n)) for n in (0, 0, 8)
    )
    scores = g.add("Softmax", g.add("MatMul", query, g.add("Transpose", key, perm=(0, 2, 1))), axis=-1)
    return g.done(g.add("Gelu", g.add("MatMul", scores, value)), g.add("Mul", x, g.constant(1, 5, 24)))


def recurrent() -> Example:
    """Return a bidirectional LSTM."""
    g = Sketch()
    weights = [g.constant(2, 4 * 9, 7), g.constant(2, 4 * 9, 9), g.constant(2, 8 * 9)]
    attributes: dict[str, Any] = {"hidden_size": 9, "direction": "bidirectional"}
    return g.done(*g.b.add_node("LSTM", [g.input(6, 1, 7), *weights], attributes, outputs=3))


def quantized() -> Example:
    """Return an int8 convolution with scales along an axis."""
    g = Sketch()
    numbers = {name: g.b.constant(np.array(v, t)) for name, v, t in (
        ("scale", 0.02, np.float32), ("zero", 20, np.uint8), ("none", 0, np.int8),
    )}  # fmt: skip
    x = g.add("QuantizeLinear", g.input(1, 8, 12, 12), numbers["scale"], numbers["zero"])
    x = g.add("DequantizeLinear", x, numbers["scale"], numbers["zero"])
    scales = g.b.constant(np.linspace(0.01, 0.02, 16, dtype=np.float32))
    zeros = g.b.constant(np.zeros(16, np.int8))
    w = g.add("DequantizeLinear", g.constant(16, 8, 3, 3, dtype="int8"), scales, zeros, axis=0)
    y = g.add("QuantizeLinear", g.add("Conv", x, w), numbers["scale"], numbers["zero"])
    return g.done(g.add("DequantizeLinear", y, numbers["scale"], numbers["zero"]))


def narrow() -> Example:
    """Return 16-bit weights, of which some are widened before packing and others are read unchanged."""
    g = Sketch()
    x = g.input(3, 32, dtype="float16")
    y = g.add("Mul", g.add("MatMul", x, g.constant(32, 48, dtype="float16")), g.constant(48, dtype="float16"))
    return g.done(y, g.add("Cast", g.constant(2, 0, dtype="bfloat16"), to=DType.FLOAT32))


def views() -> Example:
    """Return constants that are scalars, empty, transposed, sliced before the run, or outputs."""
    g = Sketch()
    c = g.constant(6, 8)
    part = g.add("Slice", c, g.b.ints(2), g.b.ints(5), g.b.ints(0))
    x = g.add("Mul", g.input(3, 8), part)
    return g.done(
        g.add("Add", x, g.b.constant(np.array(0.25, np.float32))), g.add("Transpose", c), g.add("Identity", c)
    )


#: One example of each kind of constants and kernels.
GRAPHS = pytest.mark.parametrize("make", [convolutions, transformer, recurrent, quantized, narrow, views])
