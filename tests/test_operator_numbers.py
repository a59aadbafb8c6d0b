"""Each operator declares the inputs that must be known numbers: those that its shape inference needs, and no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from lite_conformance.cases.operators import all_tables
from lite_core import ops
from lite_core.ir import Node, TensorType, Value
from lite_core.ops.helpers import number_inputs
from lite_core.ops.infer import GraphInference

Arrays = dict[Value, np.ndarray]

#: Inputs that decide no shape, but which elements are computed together, or which are kept.
CHOOSE_ELEMENTS = {"CumSum": {"axis"}, "Trilu": {"k"}}
#: Operators with sub-graphs: whether M and cond must be known depends on how a backend runs loops and branches.
WITH_SUBGRAPHS = {"If", "Loop", "Scan"}


@pytest.fixture(scope="module")
@np.errstate(all="ignore")
def found() -> tuple[dict[str, set[str]], set[str]]:
    """The inputs on whose elements the shapes of a case depend, by operator; and the operators that have cases."""
    deciding: dict[str, set[str]] = defaultdict(set)
    seen: set[str] = set()
    for node, arrays in nodes():
        definition = ops.get(node)
        seen.add(definition.qualified_name)
        given = [p.name for p, value in zip(definition.inputs, node.inputs) if value is not None]
        positions = [definition.inputs[index].name for index in number_inputs(node)]
        assert positions == [name for name in given if name in definition.numbers]
        if all(type.is_static for type in inferred(node, arrays, None)):
            for index, value in enumerate(node.inputs):
                if value is not None and not all(type.is_static for type in inferred(node, arrays, value)):
                    parameter = definition.parameter(index)
                    assert parameter is not None
                    deciding[definition.qualified_name].add(parameter.name)
    return deciding, seen


def nodes() -> Iterator[tuple[Node, Arrays]]:
    """Yield the node of each case of the suite, once for all element types, and the arrays of its inputs."""
    for table in all_tables():
        labels = set()
        for _, dtype, case in table.cases():
            if case.label not in labels:
                labels.add(case.label)
                graph, arrays = case.build(dtype, 0)
                yield graph.nodes[0], {**graph.constants, **dict(zip(graph.inputs, arrays))}


def inferred(node: Node, arrays: Arrays, unknown: Value | None) -> list[TensorType]:
    """Infer a node whose inputs have static shapes, and known elements except for one input."""
    inference = GraphInference()
    for value in {*node.used()}:
        inference.set_type(value, TensorType.of_array(arrays[value]))
        if value is not unknown:
            inference.set_value(value, arrays[value])
    return inference.infer(node)


def test_declared_numbers_are_those_that_decide_shapes(found: tuple[dict[str, set[str]], set[str]]) -> None:
    deciding, _ = found
    declared = {d.qualified_name: set(d.numbers) for d in ops.all_ops() if d.domain in ("", "lite")}
    decide = {name: numbers - CHOOSE_ELEMENTS.get(name, set()) for name, numbers in declared.items()}
    derived = {name: deciding.get(name, set()) for name in declared}
    wrong = {name for name in declared if decide[name] != derived[name]} - WITH_SUBGRAPHS
    assert not wrong, {name: (decide[name], derived[name]) for name in wrong}
    assert all(numbers <= declared[name] for name, numbers in CHOOSE_ELEMENTS.items())


def test_every_operator_has_cases_here(found: tuple[dict[str, set[str]], set[str]]) -> None:
    """An operator without a case would pass the test above whatever it declares."""
    _, seen = found
    assert not {d.qualified_name for d in ops.all_ops() if d.domain in ("", "lite")} - seen - {*without_table()}


def without_table() -> Iterator[str]:
    """The operators whose inputs are strings: they run on host only."""
    tables = {table.definition.qualified_name for table in all_tables()}
    yield from (d.qualified_name for d in ops.all_ops() if d.qualified_name not in tables)


def test_names_of_numbers_are_inputs() -> None:
    for definition in ops.all_ops():
        assert set(definition.numbers) <= {parameter.name for parameter in definition.inputs}
