"""The ONNX project's own node test data as operator cases.

ONNX 1.17 carries about 1,300 models of a node or a few, each with inputs and the outputs that they must give:
answers that nobody here has computed. Reading them needs the package ``onnx`` (``lite-conformance[onnx]``).
"""

from __future__ import annotations

from lite_conformance.cases.onnx_node_data.cases import (
    FOUR_DECIMALS,
    NODE_DATA,
    DataSet,
    NodeDataCase,
    expected,
    left_out,
    node_data_cases,
    unmapped,
)
from lite_conformance.cases.onnx_node_data.source import find_node_data

__all__ = [
    "FOUR_DECIMALS",
    "NODE_DATA",
    "DataSet",
    "NodeDataCase",
    "expected",
    "find_node_data",
    "left_out",
    "node_data_cases",
    "unmapped",
]
