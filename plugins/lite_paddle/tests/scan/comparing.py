"""Comparison of Lite's result of a case with Paddle's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hand_made import program_of

from lite_core.errors import LiteError, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from scan.drawing import Array, Case

__all__ = ["disagreement", "graph_of"]


def _program(case: Case, version: int, is_open: bool = False) -> tuple[Any, list[Array]]:
    return program_of(
        case.op,
        case.inputs,
        case.attrs,
        outputs=case.outputs,
        parameters=case.parameters,
        lod=case.lod,
        version=version,
        shapes={s: [-1] * a[0].ndim for s, a in case.inputs.items() if s not in case.parameters} if is_open else None,
    )


def graph_of(case: Case, version: int) -> Graph:
    """Lower the case to Lite's opset, as the model of a version of Paddle, such as 2_006_002.

    Raises:
        UnsupportedOperatorError: it cannot be lowered.
    """
    return lower(_program(case, version)[0], lod=bool(case.lod))


def disagreement(
    case: Case, version: int, expected: list[tuple[Array, list[list[int]]]], *, is_open: bool = False
) -> str | None:
    """Lower a case, run it with the references, and return the first difference from that version, or None.

    With ``is_open``, the model has no fixed size; an operator that must know one may then refuse it.
    """
    try:
        program, feeds = _program(case, version, is_open)
        graph = lower(program, lod=bool(case.lod))
        results = evaluate_graph(graph, feeds)
    except LiteError as error:
        if is_open and isinstance(error, UnsupportedOperatorError):
            return None
        return f"{type(error).__name__}: {error}"
    for value, found, (wanted, _) in zip(graph.outputs, results, expected):
        if not value.type.accepts(found.shape):
            return f"{value} was inferred, but the shape is {found.shape}"
        if found.dtype != wanted.dtype:
            return f"{value.name} is {found.dtype}, Paddle has {wanted.dtype}"
        if found.shape != wanted.shape:
            return f"{value.name} has the shape {found.shape}, Paddle's has {wanted.shape}"
        difference = _difference(case, found, wanted)
        if difference:
            return f"{value.name} differs: {difference}"
    # A model whose inputs have no sequences has no offsets.
    return _offsets_differ(graph, results, expected) if case.lod else None


def _difference(case: Case, found: Array, wanted: Array) -> str | None:
    try:
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=case.atol)
        else:
            np.testing.assert_array_equal(found, wanted)
    except AssertionError as error:
        return str(error)
    return None


def _offsets_differ(graph: Graph, results: list[Array], expected: list[tuple[Array, list[list[int]]]]) -> str | None:
    """Compare the offsets that the graph has as outputs; sequences of equal length need none."""
    offsets = {value.name: array.tolist() for value, array in zip(graph.outputs, results)}
    for value, (_, levels) in zip(graph.outputs, expected):
        names = [f"{value.name}.lod"] if len(levels) == 1 else [f"{value.name}.lod{n}" for n in range(len(levels))]
        for name, wanted in zip(names, levels):
            if name in offsets and offsets[name] != list(wanted):
                return f"{name} is {offsets[name]}, Paddle's offsets are {wanted}"
            if name not in offsets and len(set(np.diff(wanted).tolist())) > 1:
                return f"{name} is missing, Paddle's offsets are {wanted}"
    return None
