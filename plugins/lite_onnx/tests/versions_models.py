"""Models of one node, written for an operator set of the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import lite_core as lite

Array = np.ndarray[Any, Any]


def model_of(op: str, version: int, inputs: Sequence[Array | None], outputs: int, attributes: dict[str, Any]) -> Any:
    """A model of one node; its inputs are the model's, its outputs have no types."""
    names = ["" if a is None else f"input_{i}" for i, a in enumerate(inputs)]
    given = named(inputs)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in given.items()
    ]
    results = [f"output_{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=name) for name in results])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=4)


def with_constants(model: Any, inputs: dict[str, Array]) -> Any:
    """The model with these inputs as initializers."""
    kept = [value for value in model.graph.input if value.name not in inputs]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in inputs.items())
    return model


class OldModels:
    """Runs nodes of old versions.

    Args:
        folder: where the models are written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "old.onnx"

    def lite(
        self,
        op: str,
        version: int,
        inputs: Sequence[Array | None],
        outputs: int = 1,
        constants: Sequence[int] = (),
        **attributes: Any,
    ) -> list[Array]:
        """The outputs of a node by Lite; ``constants``: positions of inputs that are initializers."""
        given = named(inputs)
        fixed = {name: given[name] for name in (f"input_{i}" for i in constants)}
        return self.run(with_constants(model_of(op, version, inputs, outputs, attributes), fixed), given)

    def run(self, model: Any, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs of a model by Lite."""
        self.path.write_bytes(model.SerializeToString())
        session = lite.load(str(self.path), backend="host")
        return list(session.run({name: a for name, a in inputs.items() if name in session.inputs}).values())

    def onnxruntime(
        self, op: str, version: int, inputs: Sequence[Array | None], outputs: int = 1, **attributes: Any
    ) -> list[Array]:
        """The outputs of a node by ONNX Runtime."""
        return run_by_onnxruntime(model_of(op, version, inputs, outputs, attributes), named(inputs))


def named(inputs: Sequence[Array | None]) -> dict[str, Array]:
    """Inputs by the names that they have here; those that are left out have none."""
    return {f"input_{i}": a for i, a in enumerate(inputs) if a is not None}


def run_by_onnxruntime(model: Any, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of a model by ONNX Runtime, without its optimizations."""
    runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is what old versions are compared with")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    results: list[Array] = session.run(None, {name: a for name, a in inputs.items() if name in names})
    return results


def numbers(*shape: int, seed: int = 0) -> Array:
    """Small numbers of both signs, all different."""
    order = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return ((order - order.size / 2 + 0.25) / 4).astype(np.float32).reshape(shape)
