"""Helpers that compare a graph, on a level of this processor, with its reference in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from levels import run_on

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

__all__ = ["SeededGraph", "agree_graph"]

Array = np.ndarray[Any, Any]


class SeededGraph:
    """A graph under construction with seeded random inputs and constants, the same for every element type."""

    def __init__(self, dtype: str) -> None:
        self.b = GraphBuilder("drawn")
        self.inputs: dict[str, Array] = {}
        self._dtype = dtype
        self._random = np.random.default_rng(0)

    def _numbers(self, shape: tuple[int, ...]) -> Array:
        return self._random.standard_normal(shape).astype(np.float32).astype(DType(self._dtype).numpy)

    def input(self, *shape: int) -> Value:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self._numbers(shape)
        return self.b.input(name, self._dtype, shape)

    def constant(self, *shape: int) -> Value:
        return self.b.constant(self._numbers(shape))

    def tensor(self, constant: bool, *shape: int) -> Value:
        return self.constant(*shape) if constant else self.input(*shape)

    def number(self, value: float) -> Value:
        return self.b.constant(np.array(value, DType(self._dtype).numpy))

    def add(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        return self.b.add(op, inputs, attributes)

    def built(self, *outputs: Value) -> Graph:
        for number, value in enumerate(outputs):
            self.b.output(value, f"y{number}")
        return self.b.build()


#: A function that adds nodes and returns the outputs.
Build = Callable[[SeededGraph], tuple[Value, ...]]


def agree_graph(machine: Machine, build: Build, *, tolerance: float = 4e-6, threads: int = 1) -> None:
    """Assert that results differ from the reference by at most ``tolerance`` times the largest expected number."""
    narrow, wide = SeededGraph("float32"), SeededGraph("float64")
    graph, truth = narrow.built(*build(narrow)), wide.built(*build(wide))
    expected = evaluate_graph(truth, [wide.inputs[v.name] for v in truth.inputs])
    actual = run_on(machine, graph, narrow.inputs, threads=threads)
    for number, array in enumerate(expected):
        finite = np.abs(array[np.isfinite(array)])
        np.testing.assert_allclose(
            actual[f"y{number}"].astype(np.float64),
            array,
            rtol=0,
            atol=tolerance * finite.max(initial=0.0),
            err_msg=f"output {number} on {machine.name} with {threads} threads",
        )
