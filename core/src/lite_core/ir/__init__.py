"""The graph IR: SSA values, nodes, constants, tensor types, symbolic dimensions, and the verifier."""

from lite_core.ir.dim_data import dim_from_data, dim_to_data
from lite_core.ir.dims import (
    Dim,
    Shape,
    SymbolicDim,
    broadcast,
    evaluate_shape,
    fresh_dim,
    maximum,
    never_negative,
    product,
    quotient,
)
from lite_core.ir.graph import Attribute, Graph, Node, Origin, Value, format_graph
from lite_core.ir.pages import aligned_empty, release_pages
from lite_core.ir.panels import Nibbles, PanelLayout, SavedWeights
from lite_core.ir.types import Array, DType, TensorType
from lite_core.ir.verifier import verify_structure

__all__ = [
    "Array",
    "Attribute",
    "DType",
    "Dim",
    "Graph",
    "Nibbles",
    "Node",
    "Origin",
    "PanelLayout",
    "SavedWeights",
    "Shape",
    "SymbolicDim",
    "TensorType",
    "Value",
    "aligned_empty",
    "broadcast",
    "dim_from_data",
    "dim_to_data",
    "evaluate_shape",
    "format_graph",
    "fresh_dim",
    "maximum",
    "never_negative",
    "product",
    "quotient",
    "release_pages",
    "verify_structure",
]
