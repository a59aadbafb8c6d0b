"""ONNX 1.17's node test data: the suite reads it correctly, and references and type inference agree with it.

Each case checks three things: the outputs, the types inferred for the real shapes, and the types inferred with
symbolic input dimensions. Excluded folders must not run.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx_wheel import node_data

from lite_conformance.cases.onnx_node_data import convert
from lite_conformance.cases.onnx_node_data.cases import (
    FOUR_DECIMALS,
    NODE_DATA,
    NodeDataCase,
    expected,
    left_out,
    node_data_cases,
    unmapped,
)
from lite_conformance.cases.onnx_node_data.source import find_node_data
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import Allowance, check_arrays
from lite_conformance.judge.outcome import Failure
from lite_core.errors import InputError, LiteError
from lite_core.ir import DType, Graph, SymbolicDim
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import specialize

FOLDER = node_data()
CASES = {case.name: case for case in node_data_cases(FOLDER)}
UNMAPPED = dict(unmapped(FOLDER))
REASONS = {reason for _, reason in left_out()}


def run_case(case: NodeDataCase) -> None:
    """Run one case by the references, and raise on a difference."""
    symbolic = convert.read_graph(case.folder, symbolic=True)
    sets = case.load()
    assert sets, f"{case.folder} has no data"
    for data in sets:
        results = evaluate_graph(data.graph, data.inputs)
        assert len(data.outputs) == len(data.graph.outputs)
        for value, result, wanted in zip(data.graph.outputs, results, data.outputs):
            found = f"{value.name}: {result.dtype}{list(result.shape)}"
            assert value.type.accepts(result.shape), f"{found}, inferred {value.type}"
            assert value.dtype == result.dtype.name, f"{found}, inferred {value.type}"
            assert result.dtype == wanted.dtype, f"{found}, expected {wanted.dtype}"
        _, measured = check_arrays(results, expected(data), case.numerics, Allowance())
        assert measured.wrong == 0, f"{measured.wrong} of {measured.elements} element(s) wrong; {measured.worst}"
        check_symbolic(symbolic, data.inputs, results)


def check_symbolic(graph: Graph, inputs: Sequence[Array], results: Sequence[Array]) -> None:
    """Check that symbolic shapes, evaluated for the real sizes, and specialised shapes equal the real ones."""
    bindings = {}
    for value, array in zip(graph.inputs, inputs):
        for dim, size in zip(value.type.shape or (), array.shape):
            assert isinstance(dim, SymbolicDim)
            bindings[str(dim)] = size
    for value, result in zip(graph.outputs, results):
        if value.type.shape is None:
            continue
        assert len(value.type.shape) == result.ndim, f"symbolic {value.type}, is {result.shape}"
        for axis, (dim, size) in enumerate(zip(value.type.shape, result.shape)):
            if isinstance(dim, int) or dim.symbols <= bindings.keys():
                known = dim if isinstance(dim, int) else dim.evaluate(bindings)
                assert known == size, f"axis {axis} of {value.type} gives {known}, is {size}"
    shapes = {value.name: array.shape for value, array in zip(graph.inputs, inputs)}
    special = specialize(graph, shapes, dict(zip(shapes, inputs)))
    for value, result in zip(graph.outputs, results):
        type_ = special.type_of(value)
        assert type_.accepts(result.shape), f"specialised to {type_}, is {result.shape}"


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    run_case(CASES[name])


# Some cases of strings run on host; lite-onnx's tests run all of them.
@pytest.mark.parametrize("name", [n for n, why in UNMAPPED.items() if why in REASONS and not why.startswith("strings")])
def test_excluded_case_does_not_run(name: str) -> None:
    folder = FOLDER / f"test_{name[len('onnx[') : -1]}"
    with pytest.raises((LiteError, Failure, AssertionError)):
        run_case(NodeDataCase(name, "", DType.FLOAT32, folder, NODE_DATA))


def test_every_folder_is_a_case_or_excluded_by_a_pattern() -> None:
    folders = {model.parent.name for model in FOLDER.glob("*/model.onnx")}
    assert {f"onnx[{f[len('test_') :]}]" for f in folders} == CASES.keys() | UNMAPPED.keys()
    assert not CASES.keys() & UNMAPPED.keys()
    assert [n for n, reason in UNMAPPED.items() if reason not in REASONS] == ["onnx[constant]"]
    stale = [pattern for pattern, _ in left_out() if not fnmatch.filter(folders, pattern)]
    assert not stale, f"lines of left_out.txt that match no folder: {stale}"


@pytest.mark.parametrize(
    ("name", "op", "dtype"),
    [
        ("conv_with_strides_padding", "Conv", "float32"),
        ("cast_FLOAT_to_DOUBLE", "Cast", "float32"),
        ("where_long_example", "Where", "int64"),
        ("greater", "Greater", "float32"),
        ("range_int32_type_negative_delta", "Range", "int32"),
        ("nonmaxsuppression_two_classes", "NonMaxSuppression", "float32"),
        ("loop11", "Loop", "float32"),
        ("gelu_default_1_expanded", "", "float32"),
        ("range_float_type_positive_delta_expanded", "", "float32"),
    ],
)
def test_operator_and_element_type_of_a_case(name: str, op: str, dtype: str) -> None:
    case = CASES[f"onnx[{name}]"]
    assert (case.op, case.dtype) == (op, dtype)


def test_tolerances_are_the_documented_ones() -> None:
    allowance = Allowance()
    tolerance = allowance.tolerance(NODE_DATA, DType.FLOAT32)
    assert (tolerance.rtol, tolerance.atol) == pytest.approx((1e-4, 1e-5), rel=0.01)
    tolerance = allowance.tolerance(FOUR_DECIMALS, DType.FLOAT32)
    assert (tolerance.rtol, tolerance.atol) == pytest.approx((1e-4, 1e-4), rel=0.01)
    four_decimals = {n for n, case in CASES.items() if case.numerics is FOUR_DECIMALS}
    assert four_decimals == {"onnx[roialign_aligned_true]", "onnx[roialign_aligned_false]", "onnx[gridsample_bicubic]"}


# **** finding the data ****


def wheel_of(folder: Path, names: Sequence[str], file: Path) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("onnx/__init__.py", "")
        for name in names:
            for part in (folder / name).rglob("*.*"):
                archive.write(part, Path("onnx/backend/test/data/node", part.relative_to(folder)))
    return file


def test_wheel_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    wheel = wheel_of(FOLDER, ["test_relu", "test_add"], tmp_path / "onnx.whl")
    found = find_node_data(str(wheel))
    assert found is not None
    assert [case.name for case in node_data_cases(found)] == ["onnx[add]", "onnx[relu]"]
    for case in node_data_cases(found):
        run_case(case)
    (found / "stamp").touch()
    assert find_node_data(wheel) == found
    assert (found / "stamp").exists()
    assert [p.name for p in found.parent.iterdir()] == [found.name], "temporary folders are removed"
    assert tmp_path / "cache" in found.parents


@pytest.mark.parametrize("kind", ["off", "writable"])
def test_wheel_is_not_unpacked_where_others_can_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "writable" and not hasattr(os, "geteuid"):
        pytest.skip("this system has no user ids")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache") if kind == "writable" else "off")
    wheel = wheel_of(FOLDER, ["test_relu"], tmp_path / "onnx.whl")
    with pytest.raises(InputError, match="LITE_CACHE_DIR"):
        find_node_data(wheel)
    assert list((tmp_path / "cache").iterdir()) == []


def test_folders_that_contain_the_data_are_found(tmp_path: Path) -> None:
    inner = tmp_path / "onnx" / "backend" / "test" / "data" / "node"
    (inner / "test_x").mkdir(parents=True)
    (inner / "test_x" / "model.onnx").touch()
    for given in (inner, tmp_path / "onnx", tmp_path):
        assert find_node_data(given) == inner


def test_paths_without_data_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    with zipfile.ZipFile(tmp_path / "empty.whl", "w") as archive:
        archive.writestr("onnx/__init__.py", "")
    for given in (tmp_path, tmp_path / "none", tmp_path / "empty.whl", tmp_path / "a.txt"):
        with pytest.raises(InputError, match=re.escape(str(given))):
            find_node_data(given)


def test_no_data_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find_node_data(None) is None
    (tmp_path / "test_x").mkdir()
    (tmp_path / "test_x" / "model.onnx").touch()
    with pytest.raises(InputError, match=r"pip install 'lite-conformance\[onnx\]'"):
        list(node_data_cases(tmp_path))


def test_unreadable_model_is_excluded_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "test_x").mkdir()
    (tmp_path / "test_x" / "model.onnx").write_bytes(b"\xff\xff\xff")
    ((name, reason),) = unmapped(tmp_path)
    assert name == "onnx[x]"
    assert "model.onnx" in reason
    assert list(node_data_cases(tmp_path)) == []
