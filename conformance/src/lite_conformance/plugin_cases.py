"""Building blocks for the cases that a package brings for its own operators, passes and formats.

A package names a module by an entry point of the group ``lite.conformance``. Only the suite imports this module; it
registers tables::

    from lite_conformance.plugin_cases import FUNCTION, file_table, graph_table, t, table

    squish = table("Squish", FUNCTION, domain="acme")
    squish("2x3", t(2, 3))
    squish("2x3,steep", t(2, 3), slope=4.0)

The page docs/plugin-cases.md has a complete package.
"""

from lite_conformance.cases.graphs.draft import FLOATS, Draft
from lite_conformance.cases.op_cases import Body, Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.strategies import axes_of, axis_of, broadcastable, shape
from lite_conformance.cases.plugins.brought import file_table, graph_table
from lite_conformance.cases.tensors import (
    big,
    const,
    distinct,
    integers,
    ints,
    normal,
    positive,
    special,
    t,
    tiny,
    uniform,
    values,
)
from lite_conformance.judge.tolerances import (
    ARITHMETIC,
    EXACT,
    FUNCTION,
    GRAPH,
    MOVED,
    NETWORK,
    RELATIVE,
    SCALED,
    SUM,
    Numerics,
)

__all__ = [
    "ARITHMETIC",
    "EXACT",
    "FLOATS",
    "FUNCTION",
    "GRAPH",
    "MOVED",
    "NETWORK",
    "RELATIVE",
    "SCALED",
    "SUM",
    "Body",
    "Draft",
    "Draw",
    "Numerics",
    "OpCase",
    "OpTable",
    "axes_of",
    "axis_of",
    "big",
    "broadcastable",
    "const",
    "distinct",
    "file_table",
    "graph_table",
    "integers",
    "ints",
    "normal",
    "positive",
    "shape",
    "special",
    "t",
    "table",
    "tiny",
    "uniform",
    "values",
]
