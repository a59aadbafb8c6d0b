"""Models of one node, whose results by Lite are compared with those by ONNX Runtime."""

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
    """Build a model of one node.

    Args:
        op: its operator.
        inputs: the arrays of its inputs; None for an omitted input.
        attributes: the node's attributes.
        outputs: the names of its outputs; empty for an omitted one.
        constants: positions of inputs that are initializers.
        dims: the model's dimensions for inputs at some positions, if they differ from those of the array.
        domain: the operator's domain.
        version: the version of the domain's operator set.
        onnx_opset: the version of ONNX's own operator set.
        types: element types of outputs that cannot be inferred.
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
    results = [_output(name, (types or {}).get(name)) for name in outputs if name]
    graph = helper.make_graph([node], op, values, results, initializers)
    opsets = [helper.make_opsetid("", onnx_opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _name(position: int, array: Array | None) -> str:
    return "" if array is None else f"input_{position}"


def _output(name: str, dtype: Any) -> onnx.ValueInfoProto:
    """Declare an output, usually only by its name."""
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)


class RuntimeModels:
    """Runs nodes with Lite and with ONNX Runtime.

    Args:
        folder: the folder that models are written to.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.onnx"

    def lite(self, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run a model with Lite; return the outputs by name."""
        session = self.load(model)
        results: dict[str, Array] = session.run({name: a for name, a in inputs.items() if name in session.inputs})
        return results

    def onnxruntime(self, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run a model with ONNX Runtime; return the outputs by name."""
        return run_by_onnxruntime(model, inputs)

    def load(self, model: onnx.ModelProto) -> lite.Session:
        """Load a model on host."""
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
        """Compare a node's outputs by Lite with those by ONNX Runtime, and return the latter.

        Args:
            op: see :func:`node_model`.
            inputs: see :func:`node_model`.
            outputs: the names of the outputs, or their number.
            constants: see :func:`node_model`.
            dims: see :func:`node_model`; if given, the model is run with them as well as with the inputs' sizes.
            tolerance: the maximum difference of floating-point outputs, relative to the largest element.
            steps: the maximum difference of integer outputs.
            domain: see :func:`node_model`.
            version: see :func:`node_model`.
            onnx_opset: see :func:`node_model`.
            types: see :func:`node_model`.
            expected: the outputs to compare with, instead of ONNX Runtime's.
            **attributes: the node's attributes.
        """
        names = [f"output_{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        arrays = {_name(i, a): a for i, a in enumerate(inputs) if a is not None}
        options: dict[str, Any] = {"outputs": names, "constants": constants, "domain": domain, "version": version}
        options.update(onnx_opset=onnx_opset, types=types)
        model = node_model(op, inputs, attributes, **options)
        oracle = expected or run_by_onnxruntime(model, arrays)
        models = [model] + ([node_model(op, inputs, attributes, dims=dims, **options)] if dims else [])
        for each in models:
            results = self.lite(each, arrays)
            for name, array in oracle.items():
                assert_close(results[name], array, tolerance, steps, f"{op}: {name}")
        return dict(oracle)


def assert_close(result: Array, expected: Array, tolerance: float, steps: int, name: str) -> None:
    """Fail unless two arrays have the same type and shape, and elements within the tolerance."""
    assert result.dtype == expected.dtype, name
    assert result.shape == expected.shape, name
    if expected.dtype.kind == "f":
        wide, other = expected.astype(np.float64), result.astype(np.float64)
        finite = np.isfinite(wide)
        assert np.array_equal(finite, np.isfinite(other)), name
        bound = tolerance * max(1.0, float(np.abs(wide[finite]).max(initial=0)))
        worst = float(np.abs(wide - other)[finite].max(initial=0))
        assert worst <= bound, f"{name} differs by {worst}, more than {bound}"
    else:
        worst = int(np.abs(result.astype(np.int64) - expected.astype(np.int64)).max(initial=0))
        assert worst <= steps, f"{name} differs by {worst} steps"


def run_by_onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run a model with ONNX Runtime, without optimizations; return the outputs by name."""
    # NOTE: earlier releases lack some of these operators, compute others wrong, and crash on a few of the models.
    runtime: Any = pytest.importorskip("onnxruntime", "1.31", reason="these operators are compared with ONNX Runtime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    results = session.run(None, {name: a for name, a in inputs.items() if name in names})
    return dict(zip((value.name for value in session.get_outputs()), results))


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Return normally distributed random numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def quantized(*shape: int, seed: int = 0, dtype: Any = np.uint8) -> Array:
    """Return random integers of the whole range of an 8-bit type."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)
