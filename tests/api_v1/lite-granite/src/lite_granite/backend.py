"""The backend: what the chip supports, and compiling for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lite_core import Device, InputError, No, Unavailable, Yes
from lite_core.backend import (
    DescribesTarget,
    Executable,
    MeasuresSpeed,
    Options,
    Partition,
    ProvidesMemory,
    ReportsFindings,
    RestoresState,
    Stale,
    StatesCompatibility,
    TakesOptions,
)
from lite_core.ir import Node
from lite_core.stack import DescribesStack

from lite_granite.memory import GraniteMemory
from lite_granite.program import compile_program, restore_program

DRIVER = "3.1"
DTYPES = {"float32", "float64", "int32", "int64", "bool"}
OPERATORS = {
    *("Abs", "Add", "Cast", "Concat", "Div", "Equal", "Exp", "Flatten", "Gemm", "Greater", "Identity", "MatMul"),
    *("Max", "Min", "Mul", "Neg", "NonZero", "ReduceMax", "ReduceSum", "Relu", "Reshape", "Sigmoid", "Softmax", "Sqrt"),
    *("Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze", "Where", "granite.Shrinkage"),
}


class Granite(
    ProvidesMemory,
    RestoresState,
    StatesCompatibility,
    TakesOptions,
    DescribesTarget,
    ReportsFindings,
    MeasuresSpeed,
    DescribesStack,
):
    """The Granite chip, with a memory of its own."""

    name = "granite"

    def probe(self) -> Sequence[Device] | Unavailable:
        if os.environ.get("GRANITE") == "absent":
            return Unavailable("no Granite chip is plugged in", "Plug it in, or unset GRANITE")
        return [self.target()]

    def target(self) -> Device:
        return Device(self.name, 0, "Granite 1", 0.4, {"driver": DRIVER}, features=frozenset({"granite-1"}), level="1")

    def measured(self, device: Device) -> Device:
        return replace(device, flops=1e9, bandwidth=1e9, launch_seconds=1e-5)

    def supports(self, node: Node, device: Device) -> Yes | No:
        if node.qualified_op not in OPERATORS:
            return No(f"Granite has no unit for {node.qualified_op}")
        for value in (*node.inputs, *node.outputs):
            if value is not None and value.dtype.value not in DTYPES:
                return No(f"Granite has no {value.dtype.value}")
        return Yes()

    def memory(self, device: Device) -> GraniteMemory:
        return GraniteMemory()

    def check_options(self, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if name != "polish":
                raise InputError(f"granite has no option {name!r}; it has: polish")
            if not isinstance(value, bool):
                raise InputError(f"granite: polish must be True or False, is {value!r}")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return compile_program(part.graph, options)

    def compatibility(self, device: Device, options: Options) -> str:
        return f"programs 1, driver {os.environ.get('GRANITE_DRIVER', DRIVER)}"

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return restore_program(pieces, part.graph, options)

    def report(self) -> Sequence[str]:
        return [f"Granite driver {DRIVER}"]

    def stack(self, device: Device) -> Mapping[str, str]:
        return {"granite driver": DRIVER}
