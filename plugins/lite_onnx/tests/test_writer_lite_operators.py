"""Operators that the written opset lacks, written as functions: every conformance case, run with ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from written_models import open_written, run_written

import lite_onnx
from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.operators import all_tables
from lite_core.builder import GraphBuilder
from lite_core.errors import UnsupportedOperatorError
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_onnx.writer import to_model

Array = np.ndarray[Any, Any]

#: Tolerances, relative to the largest expected element.
_TOLERANCES = {DType.FLOAT16: 3e-3, DType.BFLOAT16: 2e-2, DType.FLOAT32: 1e-5, DType.FLOAT64: 1e-6}
#: Operators of opsets 23 and 24.
_NEWER = {"Attention", "RMSNormalization", "RotaryEmbedding", "TensorScatter"}
#: Operators that must be written. Others may be refused; if they are written, the result must be correct.
_REQUIRED = _NEWER | {
    "AnchorGenerator",
    "BoxClip",
    "BoxCoder",
    "DecisionForest",
    "DensityPriorBox",
    "IouSimilarity",
    "MulticlassNms",
    "PriorBox",
    "SequenceIndices",
    "Swish",
    "ViterbiDecode",
    "YoloBox",
}


def cases() -> Iterator[Any]:
    for table in all_tables():
        for name, dtype, case in table.cases():
            if case.domain == "lite" or case.op in _NEWER:
                yield pytest.param(case, dtype, id=name)


def is_written(graph: Graph) -> bool:
    try:
        to_model(graph)
    except UnsupportedOperatorError:
        return False
    return True


def has_unordered_corners(boxes: Any) -> bool:
    """Return True if the second corner of a box, [..., (x1, y1, x2, y2)], is not beyond the first one."""
    return bool((boxes[..., 2:] <= boxes[..., :2]).any())


@pytest.mark.parametrize(("case", "dtype"), list(cases()))
def test_case(case: OpCase, dtype: DType) -> None:
    graph, arrays = case.build(dtype, 0)[:2]
    inputs = list(arrays.values()) if isinstance(arrays, dict) else list(arrays)
    node = graph.nodes[0]
    is_nms = node.op == "MulticlassNms"
    is_inexpressible = is_nms and (
        len(node.inputs) > 2 or not node.attributes.get("normalized", 1) or float(node.attributes.get("nms_eta", 1)) < 1
    )
    if is_inexpressible or not is_written(graph):
        assert is_inexpressible or node.op not in _REQUIRED
        with pytest.raises(UnsupportedOperatorError, match=node.name):
            to_model(graph)
        return
    model = to_model(graph)
    onnx.checker.check_model(model, full_check=True)
    arrays_of = {**dict(zip(graph.inputs, inputs)), **graph.constants}
    if is_nms and node.inputs[0] is not None and has_unordered_corners(arrays_of[node.inputs[0]]):
        pytest.skip("ONNX's NonMaxSuppression puts corners in order, and boxes without area overlap nothing there")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = evaluate_graph(graph, inputs)
    found = run_written(open_written(model.SerializeToString()), inputs)
    assert len(found) == len(expected)
    for result, oracle in zip(found, expected):
        assert (result.dtype, result.shape) == (oracle.dtype, oracle.shape)
        if not DType.of(oracle.dtype).is_floating:
            np.testing.assert_array_equal(result, oracle)
            continue
        wide = oracle.astype(np.float64)
        scale = np.abs(wide[np.isfinite(wide)]).max(initial=1)
        tolerance = _TOLERANCES[DType.of(oracle.dtype)]
        np.testing.assert_allclose(result.astype(np.float64), wide, rtol=tolerance, atol=tolerance * scale)


def test_equal_nodes_share_a_function() -> None:
    b = GraphBuilder("swishes")
    x = b.input("x", "float32", ["n", 3])
    for beta in (1.0, 1.0, 1.702):
        x = b.add("Swish", [x], {"beta": beta}, domain="lite")
    b.output(x, "y")
    model = to_model(b.build())
    assert [(n.domain, n.op_type) for n in model.graph.node] == [("lite", "Swish")] * 2 + [("lite", "Swish_2")]
    assert [f.name for f in model.functions] == ["Swish", "Swish_2"]
    onnx.checker.check_model(model, full_check=True)
    array = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    (found,) = run_written(open_written(model.SerializeToString()), [array])
    np.testing.assert_allclose(found, evaluate_graph(b.graph, [array])[0], rtol=1e-6)


def test_prior_boxes_need_known_sizes() -> None:
    b = GraphBuilder("priors")
    feature, image = (b.input(n, "float32", [1, 3, n, 8]) for n in ("feature", "image"))
    b.output(b.add("PriorBox", [feature, image], {"min_sizes": (2.0,)}, domain="lite", name="first"))
    with pytest.raises(UnsupportedOperatorError) as caught:
        to_model(b.build())
    assert [problem.nodes for problem in caught.value.problems] == [("first",)]


def test_graph_that_cannot_be_written_is_one_error_and_no_file(tmp_path: Path) -> None:
    graph = _graph_that_cannot_be_written()
    with pytest.raises(UnsupportedOperatorError) as caught:
        lite_onnx.write(graph, tmp_path / "model.onnx")
    assert [(p.op, p.nodes) for p in caught.value.problems] == [
        ("lite.BipartiteMatch", ("match", "again")),
        ("lite.RoiPool", ("pool",)),
    ]
    assert all(problem.remedy for problem in caught.value.problems)
    assert list(tmp_path.iterdir()) == []


def _graph_that_cannot_be_written() -> Graph:
    b = GraphBuilder("regions")
    x, boxes = b.input("x", "float32", [1, 3, 8, 8]), b.input("boxes", "float32", [5, 4])
    for name in ("match", "again"):
        b.output(b.add("BipartiteMatch", [boxes], domain="lite", name=name), f"{name}ed")
    b.output(b.add("RoiPool", [x, boxes], domain="lite", name="pool"), "pooled")
    return b.build()
