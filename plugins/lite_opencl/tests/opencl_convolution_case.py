"""Test cases of Conv and ConvTranspose with a tail, and their difference from the reference in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from opencl_device import first_device, run

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.device.runtime import runtime_of
from lite_opencl.lowering.compile import lower_graph

__all__ = ["ConvolutionCase", "difference", "labels"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ConvolutionCase:
    """A convolution of ``channels`` into ``outputs``.

    Attributes:
        tail: the nodes after it: "", "relu", "residual" (adds an input, then Relu) or "scale" (by channel).
        weights: "constant", or "input" for weights that are an input of the graph.
        attributes: attributes of the node, except the kernel's shape and ``group``.
    """

    channels: int
    outputs: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    groups: int = 1
    batch: int = 1
    tail: str = "relu"
    weights: str = "constant"
    op: str = "Conv"

    def graph(self, dtype: str) -> Graph:
        """Return the graph; constants are the same numbers for every element type."""
        random = np.random.default_rng(1)
        b = GraphBuilder("convolution")
        x = b.input("x", dtype, (self.batch, self.channels, *self.size))
        first, second = (self.outputs, self.channels) if self.op == "Conv" else (self.channels, self.outputs)
        shape = (first, second // self.groups, *self.kernel)
        scale = 1 / np.sqrt(max(1, self.channels // self.groups * int(np.prod(self.kernel))))
        elements = (random.standard_normal(shape) * scale).astype("float32").astype(DType(dtype).numpy)
        bias = random.standard_normal(self.outputs).astype("float32").astype(DType(dtype).numpy)
        w = b.constant(elements) if self.weights == "constant" else b.input("w", dtype, shape)
        y = b.add(self.op, [x, w, b.constant(bias)], {**self.attributes, "group": self.groups})
        if self.tail == "residual":
            y = b.add("Add", [b.input("residual", dtype, tuple(y.shape)), y])
        if self.tail == "scale":
            factors = (
                random.standard_normal((self.outputs, *(1 for _ in self.size)))
                .astype("float32")
                .astype(DType(dtype).numpy)
            )
            y = b.add("Mul", [y, b.constant(factors)])
        if self.tail in ("relu", "residual"):
            y = b.add("Relu", [y])
        b.output(y, "y")
        return b.build()

    def inputs(self) -> list[Array]:
        random = np.random.default_rng(2)
        return [random.standard_normal(tuple(v.shape)).astype("float32") for v in self.graph("float32").inputs]


def difference(case: ConvolutionCase, dtype: str = "float32") -> float:
    """Return the largest difference from the reference, as a fraction of its largest number."""
    given = [array.astype(DType(dtype).numpy) for array in case.inputs()]
    (exact,) = evaluate_graph(_wide(case, dtype), [array.astype("float64") for array in given])
    (found,) = run(case.graph(dtype), given)
    assert found.shape == exact.shape
    return float(np.abs(found.astype("float64") - exact).max() / np.abs(exact).max())


def labels(case: ConvolutionCase, **options: Any) -> list[str]:
    """Return the labels of the steps that a case is lowered to, without compiling it."""
    backend, device = first_device()
    runtime = runtime_of(backend._device(device), device.label)
    return [step.label for step in lower_graph(case.graph("float32"), Options(**options), runtime).steps]


def _wide(case: ConvolutionCase, dtype: str) -> Graph:
    """Return the graph in float64 with constants rounded to ``dtype``."""
    graph, wide = case.graph(dtype), case.graph("float64")
    for narrow, value in zip(graph.constants, list(wide.constants)):
        wide.constants[value] = graph.constants[narrow].astype("float64")
    return wide
