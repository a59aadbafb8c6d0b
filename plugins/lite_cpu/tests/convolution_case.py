"""Test cases of one Conv or ConvTranspose, and the error of the kernels against its reference in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from levels import run_on

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ConvolutionCase:
    """A convolution of ``channels`` into ``outputs``; ``pads`` are those before each axis, then those after.

    Attributes:
        tail: operators after it: "relu", "residual" (addition of an input, then Relu), "scale" (by channel) or "".
        weights: "constant", or "input" for weights that are an input of the graph.
        more: further attributes of the node.
    """

    channels: int
    outputs: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    groups: int = 1
    batch: int = 1
    tail: str = "relu"
    weights: str = "constant"
    op: str = "Conv"
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def weights_shape(self) -> tuple[int, ...]:
        if self.op == "Conv":
            return (self.outputs, self.channels // self.groups, *self.kernel)
        return (self.channels, self.outputs // self.groups, *self.kernel)

    def graph(self, dtype: str) -> Graph:
        """Return a graph of the node with constants that are the same for every element type."""
        random = np.random.default_rng(1)
        b = GraphBuilder("convolution")
        x = b.input("x", dtype, (self.batch, self.channels, *self.size))
        scale = 1 / np.sqrt(max(1, self.channels // self.groups * int(np.prod(self.kernel))))
        elements = (random.standard_normal(self.weights_shape) * scale).astype("float32").astype(dtype)
        bias = random.standard_normal(self.outputs).astype("float32").astype(dtype)
        w = b.constant(elements) if self.weights == "constant" else b.input("w", dtype, self.weights_shape)
        attributes = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "dilations": self.dilations,
            "group": self.groups,
            "pads": self.pads,
            **self.more,
        }
        y = b.add(self.op, [x, w, b.constant(bias)], attributes)
        if self.tail == "residual":
            y = b.add("Add", [b.input("residual", dtype, y.shape), y])
        if self.tail == "scale":
            factors = random.standard_normal((self.outputs, *(1 for _ in self.size))).astype("float32").astype(dtype)
            y = b.add("Mul", [y, b.constant(factors)])
        if self.tail in ("relu", "residual"):
            y = b.add("Relu", [y])
        b.output(y, "y")
        return b.build()

    def inputs(self) -> dict[str, Array]:
        random = np.random.default_rng(2)
        inputs = self.graph("float32").inputs
        return {v.name: random.standard_normal(v.shape).astype("float32") for v in inputs}


def reference(case: ConvolutionCase) -> Array:
    """Return the result in float64."""
    inputs = {name: array.astype("float64") for name, array in case.inputs().items()}
    return load(case.graph("float64"), backend="host").run(inputs)["y"]


def difference(case: ConvolutionCase, machine: Machine, threads: int = 1) -> float:
    """Return the largest difference from the reference, relative to the largest magnitude of the reference."""
    exact = reference(case)
    found = run_on(machine, case.graph("float32"), case.inputs(), threads=threads)["y"]
    assert found.shape == exact.shape
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def steps_of(case: ConvolutionCase, machine: Machine, **options: Any) -> list[PlannedStep]:
    """Lower a case without compiling, and return its steps."""
    graph = case.graph("float32")
    return lower_graph(graph, Options(**options), KernelLibrary(machine), WeightCache()).steps
