"""Every case of ONNX 1.17's node test data against the references.

A case that cannot be run is listed in ``skips.txt`` with its reason; a listed case that passes is an
error, and so is a line that matches no case. Each case checks three things: the outputs, the types that
inference gives for the real shapes, and that inference with every input dimension symbolic agrees.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from lite_core.errors import LiteError
from lite_core.ir import DType, Graph, SymbolicDim, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import specialize
from onnx_node_data.convert import NotConvertible, tensor, to_graph
from onnx_node_data.data import case_folder, case_names

# The data was computed in float32 with another summation order; ONNX's own runner allows 1e-3 for all.
_RELATIVE = {"float64": 1e-7, "float32": 1e-4, "float16": 2e-3, "bfloat16": 1e-2}
_ABSOLUTE = {"float64": 1e-7, "float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}
# Expected values that were typed in with four decimals; half a unit of the last one, and rounding.
_FOUR_DECIMALS = ("test_roialign_aligned_*", "test_gridsample_bicubic")


def _skips() -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "skips.txt").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return [(pattern.strip(), reason.strip()) for pattern, reason in pairs]


SKIPS = _skips()


def reason_to_skip(name: str) -> str | None:
    return next((reason for pattern, reason in SKIPS if fnmatch.fnmatchcase(name, pattern)), None)


def load_case(name: str) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    folder = case_folder(name)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        arrays = []
        for kind in ("input", "output"):
            files = sorted(data.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
            arrays.append([_load_tensor(f) for f in files])
        sets.append((arrays[0], arrays[1]))
    return model, sets


def _load_tensor(file: Path) -> Any:
    proto = onnx.TensorProto()
    proto.ParseFromString(file.read_bytes())
    return tensor(proto)


def _as_declared(value: Value, array: Any) -> Any:
    """Some files hold the bits of bfloat16 as uint16; the model says what they mean."""
    return array.view(DType.BFLOAT16.numpy) if value.dtype is DType.BFLOAT16 and array.dtype == np.uint16 else array


def run_case(name: str) -> None:
    """Run one case; raises what went wrong."""
    model = onnx.load(case_folder(name) / "model.onnx")
    graph, symbolic = to_graph(model), to_graph(model, symbolic=True)
    for given, wanted in load_case(name)[1]:
        inputs = [_as_declared(v, a) for v, a in zip(graph.inputs, given)]
        expected = [_as_declared(v, a) for v, a in zip(graph.outputs, wanted)]
        results = evaluate_graph(graph, inputs)
        for index, (value, result, want) in enumerate(zip(graph.outputs, results, expected)):
            where = f"{name} output {index} ({value.name})"
            assert value.type.accepts(result.shape), f"{where}: inferred {value.type}, is {result.shape}"
            assert value.type.dtype == result.dtype.name, f"{where}: inferred {value.type}, is {result.dtype}"
            assert result.dtype == want.dtype, f"{where}: element type {result.dtype}, expected {want.dtype}"
            assert result.shape == want.shape, f"{where}: shape {result.shape}, expected {want.shape}"
            check_close(name, where, result, want)
        check_symbolic(name, symbolic, inputs, results)


def check_close(name: str, where: str, result: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> None:
    kind = want.dtype.name
    if kind in _RELATIVE:
        typed = any(fnmatch.fnmatchcase(name, pattern) for pattern in _FOUR_DECIMALS)
        absolute = 1e-4 if typed else _ABSOLUTE[kind]
        np.testing.assert_allclose(
            result.astype(np.float64), want.astype(np.float64),
            rtol=_RELATIVE[kind], atol=absolute, err_msg=where,
        )  # fmt: skip
    else:
        np.testing.assert_array_equal(result, want, err_msg=where)


def check_symbolic(name: str, graph: Graph, inputs: list[Any], results: list[Any]) -> None:
    """Symbolic shapes, evaluated for the real sizes, must be the real shapes; so must specialised ones."""
    bindings = {}
    for value, array in zip(graph.inputs, inputs):
        for dim, size in zip(value.type.shape or (), array.shape):
            assert isinstance(dim, SymbolicDim)
            bindings[str(dim)] = size
    for value, result in zip(graph.outputs, results):
        if value.type.shape is None:
            continue
        assert len(value.type.shape) == result.ndim, f"{name}: symbolic {value.type}, is {result.shape}"
        for axis, (dim, size) in enumerate(zip(value.type.shape, result.shape)):
            if isinstance(dim, int) or dim.symbols <= bindings.keys():
                known = dim if isinstance(dim, int) else dim.evaluate(bindings)
                assert known == size, f"{name}: axis {axis} of {value.type} gives {known}, is {size}"
    shapes = {value.name: array.shape for value, array in zip(graph.inputs, inputs)}
    special = specialize(graph, shapes, dict(zip(shapes, inputs)))
    for value, result in zip(graph.outputs, results):
        type_ = special.type_of(value)
        assert type_.accepts(result.shape), f"{name}: specialised to {type_}, is {result.shape}"


@pytest.mark.parametrize("name", case_names())
def test_case(name: str) -> None:
    reason = reason_to_skip(name)
    if reason is None:
        run_case(name)
        return
    try:
        run_case(name)
    except (LiteError, NotConvertible, AssertionError, ValueError) as error:
        pytest.skip(f"{reason} [{type(error).__name__}]")
    pytest.fail(f"{name} is listed in skips.txt ({reason}) but passes: remove the line")


def test_every_line_of_the_skip_list_matches_a_case() -> None:
    names = case_names()
    stale = [pattern for pattern, _ in SKIPS if not fnmatch.filter(names, pattern)]
    assert not stale, f"lines of skips.txt that match no case: {stale}"
