"""Tree ensembles of the domain ai.onnx.ml, beside ONNX Runtime.

    python benchmarks/trees.py [--rows 1,10,100,1000,10000] [--threads 1,2] [--seconds 1]

The engines run each random forest in turns in one process; medians count. A ratio above 1 means that Lite is faster.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import lite_core as lite
import lite_onnx


@dataclass(frozen=True)
class Forest:
    """Random trees, with about one leaf in ten above the last level."""

    trees: int
    depth: int
    features: int
    targets: int

    def model(self) -> Any:
        """Return a TreeEnsembleRegressor as an ONNX model."""
        random = np.random.default_rng(0)
        nodes: dict[str, list[Any]] = {
            f"nodes_{name}": []
            for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
        }
        leaves: dict[str, list[Any]] = {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
        for tree in range(self.trees):
            waiting, count = [(0, 0)], 1
            while waiting:
                node, level = waiting.pop()
                is_leaf = level == self.depth or (level > 3 and random.random() < 0.1)
                record = [tree, node, int(random.integers(self.features)), float(random.normal()), "BRANCH_LEQ"]
                children = (0, 0) if is_leaf else (count, count + 1)
                if is_leaf:
                    record[2:] = [0, 0.0, "LEAF"]
                    for target in range(self.targets):
                        for name, value in zip(leaves, (tree, node, target, float(random.random()))):
                            leaves[name].append(value)
                else:
                    waiting += [(child, level + 1) for child in children]
                    count += 2
                for name, value in zip(nodes, (*record, *children)):
                    nodes[name].append(value)
        node = helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=self.targets, **nodes, **leaves
        )
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", self.features])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", self.targets])
        graph = helper.make_graph([node], "forest", [x], [y])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)

    def __str__(self) -> str:
        return f"{self.trees} trees of depth {self.depth}, {self.targets} target(s)"


FORESTS = [Forest(100, 10, 20, 1), Forest(100, 10, 20, 3), Forest(300, 6, 50, 1), Forest(10, 16, 20, 1)]


def medians(runs: list[Callable[[], Any]], seconds: float) -> list[float]:
    """Return the median time of each run; they take turns for so many seconds."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, own in zip(runs, times):
            start = time.perf_counter()
            run()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1,10,100,1000,10000")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    print(f"{'forest':38} {'threads':>7} {'rows':>6} {'ONNX Runtime':>14} {'Lite':>10} {'ratio':>6}")
    for forest in FORESTS:
        model = forest.model().SerializeToString()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "forest.onnx")
            file.write_bytes(model)
            graph = lite_onnx.read(file)
        for threads in map(int, options.threads.split(",")):
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = threads
            theirs = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
            ours = lite.load(graph, backend="x86", threads=threads)
            for rows in map(int, options.rows.split(",")):
                x = np.random.default_rng(1).standard_normal((rows, forest.features)).astype(np.float32)
                np.testing.assert_allclose(ours.run({"x": x})["y"], theirs.run(None, {"x": x})[0], rtol=1e-4)
                runs = [partial(theirs.run, None, {"x": x}), partial(ours.run, {"x": x})]
                peer, own = medians(runs, options.seconds)
                print(
                    f"{forest!s:38} {threads:7} {rows:6} {peer * 1e6:11.0f} us {own * 1e6:7.0f} us {peer / own:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
