"""Models with loops and branches, those of benchmarks/control_flow.py, on x86 beside ONNX Runtime."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lite_core as lite
from lite_core.ir import Graph
from lite_onnx.writer import to_model

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import control_flow

runtime = pytest.importorskip("onnxruntime", reason="the peer")

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")


@pytest.mark.parametrize(
    "make",
    [control_flow.attention, control_flow.greedy, control_flow.scan, control_flow.branch],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_onnxruntime(make: Callable[[], Graph], threads: int, tmp_path: Path) -> None:
    graph = make()
    path = tmp_path / "model.onnx"
    path.write_bytes(to_model(graph).SerializeToString())
    session = lite.load(path, backend="x86", threads=threads)
    assert {assignment.device for assignment in session.assignment()} == {"x86"}
    peer = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for _ in range(2):
        feeds = control_flow.feeds_of(graph)
        found = session.run(feeds)
        for name, expected in zip(found, peer.run([*found], feeds)):
            # Sums in another order; the words that are fed back are chosen from numbers further apart.
            np.testing.assert_allclose(found[name], expected, rtol=1e-3, atol=1e-4)
