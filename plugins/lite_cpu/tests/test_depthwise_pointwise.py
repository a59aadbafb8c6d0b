"""A depthwise convolution fused with the pointwise convolution that follows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from levels import machine_params, run_on, runnable_machines

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.library import KernelLibrary

Array = np.ndarray[Any, Any]

#: Machines with so small a cache that images between two convolutions do not fit.
MACHINES = [replace(machine, l2_bytes=4096) for machine in runnable_machines()]
LEVELS = pytest.mark.parametrize("machine", machine_params(MACHINES))


@dataclass(frozen=True)
class Pair:
    """A depthwise Conv and a pointwise one; ``middle`` and ``tail`` name the operators that follow them."""

    channels: int = 20
    outputs: int = 37
    size: tuple[int, int] = (11, 13)
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    batch: int = 1
    middle: str = ""
    tail: str = ""
    reused: bool = False

    def graph(self, dtype: str) -> Graph:
        rng = np.random.default_rng(0)

        def constant(*shape: int) -> Array:
            return rng.standard_normal(shape).astype("float32").astype(dtype)

        b = GraphBuilder("pair")
        x = b.input("x", dtype, (self.batch, self.channels, *self.size))
        (kh, kw), taps = self.kernel, constant(self.channels, 1, *self.kernel)
        pads = (kh // 2, kw // 2, kh // 2, kw // 2)
        attributes = {"kernel_shape": self.kernel, "strides": self.strides, "pads": pads, "group": self.channels}
        between = b.add("Conv", [x, b.constant(taps), b.constant(constant(self.channels))], attributes)
        if self.middle == "clip":
            bounds = np.array([-1, 2], "float32").astype(dtype)
            between = b.add("Clip", [between, b.constant(bounds[0]), b.constant(bounds[1])])
        elif self.middle == "scale":
            between = b.add("Mul", [between, b.constant(constant(self.channels, 1, 1))])
        inputs = [between, b.constant(constant(self.outputs, self.channels, 1, 1)), b.constant(constant(self.outputs))]
        y = b.add("Conv", inputs, {"kernel_shape": (1, 1)})
        if self.tail == "relu":
            y = b.add("Relu", [y])
        elif self.tail == "residual":
            y = b.add("Add", [y, x])
        elif self.tail == "rows":
            y = b.add("Add", [y, b.constant(constant(1, 1, y.shape[2], 1))])
        b.output(y, "y")
        if self.reused:
            b.output(between, "between")
        return b.build()


PAIRS = {
    "activations": Pair(middle="clip", tail="relu"),
    "few channels": Pair(middle="clip", tail="relu", channels=3, outputs=5, size=(30, 31)),
    "many channels": Pair(middle="clip", tail="relu", channels=256, outputs=16, size=(5, 4)),
    "stride, batch": Pair(batch=3, strides=(2, 1)),
    "one row of output at a time": Pair(kernel=(5, 5)),
    "operands of both epilogues": Pair(middle="scale", tail="residual", outputs=20, batch=2),
    "an operand of uneven pixels": Pair(tail="rows", outputs=32),
}


def kernels(graph: Graph, machine: Machine, threads: int = 1) -> list[str]:
    """Return the names of the kernels of a graph's steps."""
    lowering = lower_graph(graph, Options(threads=threads), KernelLibrary(machine), WeightCache())
    return [step.kernel.symbol for step in lowering.steps]


@LEVELS
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("threads", [1, 2])
def test_pair_agrees_with_the_reference(pair: Pair, machine: Machine, threads: int) -> None:
    x = np.random.default_rng(1).standard_normal((pair.batch, pair.channels, *pair.size)).astype("float32")
    exact = load(pair.graph("float64"), backend="host").run(x=x.astype("float64"))["y"]
    graph = pair.graph("float32")
    assert "depthwisepointwise" in kernels(graph, machine)
    found = run_on(machine, graph, {"x": x}, threads=threads)["y"]
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


def test_value_with_another_reader_is_not_fused() -> None:
    machine = replace(X86_64_V3, l2_bytes=4096)
    assert "depthwisepointwise" not in kernels(Pair(reused=True).graph("float32"), machine)


def test_image_that_fits_the_cache_is_not_fused() -> None:
    assert "depthwisepointwise" not in kernels(Pair().graph("float32"), X86_64_V3)
