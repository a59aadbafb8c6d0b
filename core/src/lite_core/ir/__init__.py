"""The graph IR: SSA values, nodes, constants, tensor types, symbolic dimensions, and the verifier."""

from lite_core.ir.dims import Dim, Shape, SymbolicDim, evaluate_shape, fresh_dim
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
    "evaluate_shape",
    "format_graph",
    "fresh_dim",
    "release_pages",
    "verify_structure",
]
