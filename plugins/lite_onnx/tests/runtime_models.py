"""Models of one node of a domain that ONNX Runtime runs, compared with what that gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import lite_core as lite

__all__ = ["MICROSOFT", "RuntimeModels", "node_model", "numbers", "quantized", "run_by_onnxruntime"]

Array = np.ndarray[Any, Any]
Dims = Sequence[int | str]

MICROSOFT = "com.microsoft"


def node_model(
    op: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    *,
    outputs: Sequence[str],
    constants: Sequence[int] = (),
    dims: Mapping[int, Dims] | None = None,
    domain: str = MICROSOFT,
    version: int = 1,
    onnx_opset: int = 21,
    types: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        op: its operator.
        inputs: what they are in the test; None for one that is left out.
        attributes: the node's.
        outputs: names of them; empty for one that is left out.
        constants: positions of inputs that are initializers.
        dims: dimensions that the model says for the inputs at some positions, where they are not just the array's.
        domain: the operator's.
        version: of the domain's operator set.
        onnx_opset: version of ONNX's own.
        types: element types of outputs that nothing can infer.
    """
    names = [_name(i, a) for i, a in enumerate(inputs)]
    values, initializers = [], []
    for position, (name, array) in enumerate(zip(names, inputs)):
        if array is None:
            continue
        if position in constants:
            initializers.append(onnx.numpy_helper.from_array(array, name))
        else:
            shape = (dims or {}).get(position, array.shape)
            values.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    node = helper.make_node(op, names, list(outputs), domain=domain, **attributes)
    made = [_output(name, (types or {}).get(name)) for name in outputs if name]
    graph = helper.make_graph([node], op, values, made, initializers)
    opsets = [helper.make_opsetid("", onnx_opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _name(position: int, array: Array | None) -> str:
    return "" if array is None else f"input_{position}"


def _output(name: str, dtype: Any) -> onnx.ValueInfoProto:
    """An output, of which usually nothing is said but its name."""
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)


class RuntimeModels:
    """Runs nodes by Lite and by ONNX Runtime.

    Args:
        folder: where models are written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.onnx"

    def lite(self, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of a model by Lite, by their names."""
        session = self.load(model)
        results: dict[str, Array] = session.run({name: a for name, a in inputs.items() if name in session.inputs})
        return results

    def onnxruntime(self, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of a model by ONNX Runtime, by their names."""
        return run_by_onnxruntime(model, inputs)

    def load(self, model: onnx.ModelProto) -> lite.Session:
        """A model, ready to run."""
        self.path.write_bytes(model.SerializeToString())
        return lite.load(str(self.path), backend="host")

    def compare(
        self,
        op: str,
        inputs: Sequence[Array | None],
        *,
        outputs: int | Sequence[str] = 1,
        constants: Sequence[int] = (),
        dims: Mapping[int, Dims] | None = None,
        tolerance: float = 1e-5,
        steps: int = 0,
        domain: str = MICROSOFT,
        version: int = 1,
        onnx_opset: int = 21,
        types: Mapping[str, Any] | None = None,
        expected: Mapping[str, Array] | None = None,
        **attributes: Any,
    ) -> dict[str, Array]:
        """Compare a node's outputs by Lite with those by ONNX Runtime, and return these.

        Args:
            op: as :func:`node_model` takes it.
            inputs: as there.
            outputs: their names, or how many there are.
            constants: as there.
            dims: as there; where they are given, the model is also run with the sizes that the inputs have.
            tolerance: most that floating-point outputs may differ, relative to the largest element.
            steps: most that outputs of integers may differ.
            domain: as there.
            version: as there.
            onnx_opset: as there.
            types: as there.
            expected: what to compare with in the place of ONNX Runtime's outputs.
            **attributes: the node's.
        """
        names = [f"output_{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        given = {_name(i, a): a for i, a in enumerate(inputs) if a is not None}
        made: dict[str, Any] = {"outputs": names, "constants": constants, "domain": domain, "version": version}
        made.update(onnx_opset=onnx_opset, types=types)
        model = node_model(op, inputs, attributes, **made)
        found = expected or run_by_onnxruntime(model, given)
        models = [model] + ([node_model(op, inputs, attributes, dims=dims, **made)] if dims else [])
        for each in models:
            results = self.lite(each, given)
            for name, right in found.items():
                assert_alike(results[name], right, tolerance, steps, f"{op}: {name}")
        return dict(found)


def assert_alike(result: Array, expected: Array, tolerance: float, steps: int, who: str) -> None:
    """Fail unless two arrays have one type and shape and nearly the same elements."""
    assert result.dtype == expected.dtype, who
    assert result.shape == expected.shape, who
    if expected.dtype.kind == "f":
        wide, other = expected.astype(np.float64), result.astype(np.float64)
        finite = np.isfinite(wide)
        assert np.array_equal(finite, np.isfinite(other)), who
        bound = tolerance * max(1.0, float(np.abs(wide[finite]).max(initial=0)))
        worst = float(np.abs(wide - other)[finite].max(initial=0))
        assert worst <= bound, f"{who} differs by {worst}, more than {bound}"
    else:
        worst = int(np.abs(result.astype(np.int64) - expected.astype(np.int64)).max(initial=0))
        assert worst <= steps, f"{who} differs by {worst} steps"


def run_by_onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a model by ONNX Runtime, without its optimizations, by their names."""
    # NOTE: releases before it lack some of these operators, have others wrong, and do not survive a few of the models.
    runtime: Any = pytest.importorskip("onnxruntime", "1.31", reason="these operators are compared with ONNX Runtime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {value.name for value in session.get_inputs()}
    results = session.run(None, {name: a for name, a in inputs.items() if name in given})
    return dict(zip((value.name for value in session.get_outputs()), results))


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Random numbers of a normal distribution."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def quantized(*shape: int, seed: int = 0, dtype: Any = np.uint8) -> Array:
    """Random integers of the whole range of an 8-bit type."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)
