"""ViterbiDecode at every level of this processor: tags that fill vectors in part, and results that are not dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from graph_agreement import SeededGraph, agree_graph

from lite_core.ir import Value
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]


def decoded(g: SeededGraph, batch: int, steps: int, tags: int, *, constant: bool = True) -> list[Value]:
    lengths = g.b.constant(np.arange(batch) % (steps + 1))
    moves, start, stop = (g.tensor(constant, *shape) for shape in ((tags, tags), (tags,), (tags,)))
    return g.b.add_node(
        "ViterbiDecode", [g.input(batch, steps, tags), moves, start, stop, lengths], outputs=2, domain="lite"
    )


@MACHINES
@pytest.mark.parametrize("tags", [1, 7, 16, 37])
def test_tags_that_fill_vectors_in_part(machine: Machine, tags: int) -> None:
    agree_graph(machine, lambda g: tuple(decoded(g, 5, 6, tags)), threads=2)


@MACHINES
def test_transitions_computed_by_the_model_and_results_that_are_parts_of_tensors(machine: Machine) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        first, second = decoded(g, 3, 4, 19, constant=False), decoded(g, 3, 2, 19)
        paths = g.b.add("Concat", [first[1], second[1]], {"axis": 1})
        return paths, g.b.add("Concat", [first[0], second[0]], {"axis": 0})

    agree_graph(machine, build)


@MACHINES
def test_emissions_in_another_order(machine: Machine) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        turned = g.add("Transpose", g.input(9, 3, 4), perm=(1, 2, 0))
        return tuple(g.b.add_node("ViterbiDecode", [turned, g.constant(9, 9)], outputs=2, domain="lite"))

    agree_graph(machine, build)
