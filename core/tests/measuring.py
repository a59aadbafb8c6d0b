"""A backend that measures its kernels, and a network that it runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.backend import Buffer, Device, KernelTime, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node

X = np.array([[-1, 2, -3]], np.float32)


def network() -> Graph:
    b = GraphBuilder("network")
    x = b.input("x", "float32", ["n", 3])
    y = b.add("Relu", [b.add("Exp", [x], name="first")], name="second")
    b.output(b.add("Neg", [y], name="third"), "y")
    return b.build()


class Measuring:
    """A backend that computes nothing and reports kernel times that are easy to check."""

    name = "measuring"
    scratch_bytes = 0
    kernels = (
        KernelTime("exp_relu", ("first", "second"), 0.002, flops=4e6, bytes=8e6, peak_share=0.25),
        KernelTime("neg", ("third",), 0.001),
    )

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Measuring:
        return self

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        for buffer in outputs:
            buffer.data.fill(0)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        self.run(inputs, outputs, scratch)
        return self.kernels
