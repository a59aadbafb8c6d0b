"""Models of one node of an old operator set."""

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
    """Build a model of one node, whose outputs have no types."""
    names = ["" if a is None else f"input_{i}" for i, a in enumerate(inputs)]
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in named(inputs).items()
    ]
    results = [f"output_{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name=name) for name in results])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=4)


def with_constants(model: Any, inputs: dict[str, Array]) -> Any:
    """Turn some inputs of a model into initializers."""
    kept = [value for value in model.graph.input if value.name not in inputs]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in inputs.items())
    return model


class OldModels:
    """Runs nodes of old versions.

    Args:
        folder: the folder that models are written to.
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
        """Run a node with Lite; ``constants``: positions of inputs that are initializers."""
        arrays = named(inputs)
        fixed = {name: arrays[name] for name in (f"input_{i}" for i in constants)}
        return self.run(with_constants(model_of(op, version, inputs, outputs, attributes), fixed), arrays)

    def run(self, model: Any, inputs: Mapping[str, Array]) -> list[Array]:
        """Run a model with Lite."""
        self.path.write_bytes(model.SerializeToString())
        session = lite.load(str(self.path), backend="host")
        return list(session.run({name: a for name, a in inputs.items() if name in session.inputs}).values())

    def onnxruntime(
        self, op: str, version: int, inputs: Sequence[Array | None], outputs: int = 1, **attributes: Any
    ) -> list[Array]:
        """Run a node with ONNX Runtime."""
        return run_by_onnxruntime(model_of(op, version, inputs, outputs, attributes), named(inputs))


def named(inputs: Sequence[Array | None]) -> dict[str, Array]:
    """Return the inputs by name, without omitted ones."""
    return {f"input_{i}": a for i, a in enumerate(inputs) if a is not None}


def run_by_onnxruntime(model: Any, inputs: Mapping[str, Array]) -> list[Array]:
    """Run a model with ONNX Runtime, without optimizations."""
    runtime: Any = pytest.importorskip("onnxruntime", reason="old versions are compared with ONNX Runtime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    results: list[Array] = session.run(None, {name: a for name, a in inputs.items() if name in names})
    return results


def numbers(*shape: int, seed: int = 0) -> Array:
    """Return small distinct numbers of both signs."""
    order = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return ((order - order.size / 2 + 0.25) / 4).astype(np.float32).reshape(shape)
