"""The search for the node that NaN and infinity come from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.session import load
from lite_tools.diagnostics import check_finite

host = partial(load, backend="host", optimize=False)


def network() -> Graph:
    """Build a graph with a logarithm that is not finite for x <= -1; the following nodes hide infinity again."""
    b = GraphBuilder("net")
    x = b.input("x", "float32", ["n"])
    shifted = b.add("Add", [x, b.constant(np.float32(1), "one")], name="shift")
    logarithm = b.add("Log", [shifted], name="logarithm")
    b.output(b.add("Tanh", [b.add("Mul", [logarithm, shifted], name="scale")], name="last"), "y")
    return b.build()


def test_all_finite() -> None:
    graph = network()
    outputs = list(graph.outputs)
    report = check_finite(graph, host, {"x": np.array([0, 1, 2], np.float32)})
    assert report.ok
    assert (report.values, report.not_finite) == (4, 0)
    assert graph.outputs == outputs


def test_first_node_with_a_result_that_is_not_finite() -> None:
    report = check_finite(network(), host, {"x": np.array([5, -1, -3, 0], np.float32)})
    assert not report.ok
    assert report.first is not None
    assert (report.first.node, report.first.op, report.first.device) == ("logarithm", "Log", "host")
    assert (report.first.nan, report.first.infinite, report.first.elements) == (1, 1, 4)
    (read,) = report.first.inputs
    assert (read.least, read.largest) == (-2, 6)
    assert report.not_finite == 3  # -inf * 0 and NaN propagate
    assert "'logarithm'" in str(report.first)


def test_infinite_input_is_reported_for_the_first_node() -> None:
    report = check_finite(network(), host, {"x": np.array([np.inf, np.nan], np.float32)})
    assert report.first is not None
    assert (report.first.node, report.first.nan, report.first.infinite) == ("shift", 1, 1)
    assert np.isnan(report.first.inputs[0].least)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_overflow(dtype: str) -> None:
    b = GraphBuilder("narrow")
    x = b.input("x", dtype, [2])
    b.output(b.add("Exp", [b.add("Mul", [x, x], name="square")], name="exponential"), "y")
    array = np.array([2, 20], b.build().inputs[0].dtype.numpy)
    report = check_finite(b.build(), host, {"x": array})
    assert report.first is not None
    assert (report.first.node, report.first.infinite) == ("exponential", 1)
