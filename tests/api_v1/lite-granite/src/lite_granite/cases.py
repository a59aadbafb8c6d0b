"""The cases with which the conformance suite tests the operator, a pass and the format."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from lite_conformance.plugin_cases import (
    ARITHMETIC,
    FLOATS,
    Draft,
    Draw,
    OpCase,
    big,
    file_table,
    graph_table,
    shape,
    t,
    table,
)
from lite_core import DType

from lite_granite.formats import MAGIC

shrinkage = table("Shrinkage", ARITHMETIC, domain="granite")
shrinkage("2x3", t(2, 3))
shrinkage("2x3,steep", t(2, 3), slope=40.0)
shrinkage("7x257,big", t(7, 257, init=big))
shrinkage("0x3", t(0, 3))


@shrinkage.drawn
def draw_shrinkage(draw: Draw, dtype: DType) -> OpCase:
    return shrinkage.case(t(*shape(draw)), slope=draw(st.sampled_from([0.0, 0.5, 1.0, -3.0])))


graphs = graph_table("granite-find-shrinkage")


@graphs.case("shrinkage", FLOATS)
def _(g: Draft) -> None:
    x = g.input(2, 3)
    g.output(g("Div", x, g("Add", g("Abs", x), 1.0)))


def two_layers(x: Any) -> Any:
    first = x / (1 + np.abs(x))
    return first / (1 + np.abs(-2.5 * first))


files = file_table("granite")
numbers = np.linspace(-4, 4, 6, dtype=np.float32).reshape(2, 3)
files("two-layers", MAGIC + b"1.0\n-2.5\nend\n", inputs=[numbers], reference=two_layers)
