"""Models of one operator, made by hand: for operators and versions that no installed Paddle can export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.reader.attributes import complete_attributes
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue

Array = np.ndarray[Any, Any]
Slots = Mapping[str, Any]


def _listed(given: Any) -> list[Array]:
    return [np.asarray(a) for a in given] if isinstance(given, list) else [np.asarray(given)]


def program_of(
    op_type: str,
    inputs: Slots,
    attrs: Mapping[str, Any] | None = None,
    *,
    outputs: Mapping[str, int] | Sequence[str] = ("Out",),
    parameters: Sequence[str] = (),
    version: int = 2_006_002,
    shapes: Mapping[str, Sequence[int]] | None = None,
    lod: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> tuple[SourceProgram, list[Array]]:
    """Return a program of one operator, and the arrays to feed it with; offsets of sequences are the last of them.

    Args:
        op_type: legacy type.
        inputs: slot to array, or to a list of arrays.
        attrs: attributes in the file; the others get their defaults as in a real file.
        outputs: slots, or slot to number of values; all are outputs of the program.
        parameters: slots whose arrays are parameters, not inputs.
        version: version of the Paddle that wrote the model.
        shapes: slot to the shape that the file declares, -1 for open sizes; the arrays' own otherwise.
        lod: slot to the offsets of the sequences of its arrays, level by level; the number of rows is open then.
    """
    counts = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, 1)
    program = SourceProgram("legacy", version, [], [], {}, {}, SourceBlock(), Path("hand_made"))
    feeds: list[Array] = []
    offsets: list[Array] = []
    sources: dict[str, list[SourceValue]] = {}
    for slot, given in inputs.items():
        sources[slot] = []
        for number, array in enumerate(_listed(given)):
            name = f"{slot}_{number}"
            levels = (lod or {}).get(slot, ())
            shape = tuple((shapes or {}).get(slot, (-1, *array.shape[1:]) if levels else array.shape))
            value = SourceValue(name, SourceType(array.dtype.name, shape, lod_level=len(levels)))
            sources[slot].append(value)
            if slot in parameters:
                program.parameters[name], program.parameter_values[name] = array, value
            else:
                program.inputs.append((name, value))
                feeds.append(array)
                offsets += [np.array(level, np.int64) for level in levels]
    results = {slot: [SourceValue(f"{slot}_{i}") for i in range(n)] for slot, n in counts.items()}
    op = SourceOp(op_type, sources, results, complete_attributes(op_type, dict(attrs or {})))
    program.block.ops.append(op)
    program.outputs += [(v.name, v) for values in results.values() for v in values]
    return program, feeds + offsets


def run(op_type: str, inputs: Slots, attrs: Mapping[str, Any] | None = None, **options: Any) -> list[Array]:
    """Lower a model of one operator and run it; arguments as for :func:`program_of`."""
    program, feeds = program_of(op_type, inputs, attrs, **options)
    graph = lower(program, lod=bool(options.get("lod")))
    results = evaluate_graph(graph, feeds)
    for value, array in zip(graph.outputs, results):
        assert value.type.accepts(array.shape), f"{value} was inferred, but the result has the shape {array.shape}"
        assert value.dtype == array.dtype.name, f"{value} was inferred, but the result is {array.dtype}"
    return results


def graph_of(op_type: str, inputs: Slots, attrs: Mapping[str, Any] | None = None, **options: Any) -> Graph:
    """Lower a model of one operator."""
    return lower(program_of(op_type, inputs, attrs, **options)[0])


def run_single(op_type: str, inputs: Slots, attrs: Mapping[str, Any] | None = None, **options: Any) -> Array:
    """Lower and run a model of one operator; return its first output. Arguments as for :func:`program_of`."""
    return run(op_type, inputs, attrs, **options)[0]


def assert_same(actual: Any, expected: Any) -> None:
    """Assert equal numbers and equal element types."""
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == np.asarray(expected).dtype
