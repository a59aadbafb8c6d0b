"""The ONNX project's test models, read, written and run with ONNX Runtime: results match the test data."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from written_models import open_written, run_written

import lite_onnx
from lite_core.errors import UnsupportedOperatorError
from lite_core.ir import DType, Graph, Value
from lite_onnx.reader.tensors import read_tensor

pytestmark = pytest.mark.full("onnx")

if not onnx.__version__.startswith("1.17."):
    pytest.skip("the test data is in the wheel of onnx 1.17 only", allow_module_level=True)

Array = np.ndarray[Any, Any]

DATA = Path(onnx.__file__).parent / "backend/test/data"
CASES = sorted(
    folder.relative_to(DATA).as_posix()
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator")
    for folder in (DATA / kind).iterdir()
)
#: Cases that some versions of ONNX Runtime have no kernel for; the model is written and checked.
MISSING_KERNELS = {
    "test_roialign_*": "RoiAlign of opset 22",
    "test_ai_onnx_ml_tree_ensemble_set_membership": "Where of bool",
    "test_bitshift_*_uint16": "BitShift of uint16",
    "test_max_?int16": "Max of 16-bit integers",
    "test_max_int16": "Max of 16-bit integers",
    "test_min_?int16": "Min of 16-bit integers",
    "test_min_int16": "Min of 16-bit integers",
    "test_pow_types_float32_uint*": "Pow with unsigned exponents",
    "test_*_batchwise": "recurrent layers with the batch first (layout=1)",
}
#: Cases with data of sequences and optionals, which Lite represents by several tensors.
SEQUENCE_DATA = {
    "test_optional_get_element_optional_tensor",
    "test_optional_has_element_empty_optional_input",
    "test_optional_has_element_optional_input",
    "test_optional_has_element_tensor_input",
    "test_split_to_sequence_nokeepdims",
}
#: Cases whose results differ from the data, also with the original model.
DIFFERENT = {
    "test_cast*FLOAT_to_BFLOAT16*": "rounds; the data are truncated",
    "test_qlinearmatmul_*_int8_*": "QLinearMatMul of int8 saturates",
    "test_training_dropout*": "random numbers",
    "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True": "counts what ceil_mode adds",
    "test_maxunpool_export_with_output_shape": "computes offsets from the shape without output_shape",
    "test_resize_downsample_scales_*_align_corners": "does not round down the lengths of resized axes",
}


@pytest.mark.parametrize("case", CASES)
def test_written_models_compute_the_same(case: str, tmp_path: Path) -> None:
    name = case.rpartition("/")[2]
    try:
        graph = lite_onnx.read(DATA / case / "model.onnx")
    except UnsupportedOperatorError as error:
        pytest.skip(f"the model cannot be read: {error.problems[0].reason}")
    file = tmp_path / "written.onnx"
    lite_onnx.write(graph, file)
    again = lite_onnx.read(file)
    # Some nodes are gone, because the written file declares more types than the original.
    assert again.op_counts().keys() <= {*graph.op_counts(), "Identity"}
    assert [v.name for v in (*again.inputs, *again.outputs)] == [v.name for v in (*graph.inputs, *graph.outputs)]
    if name in SEQUENCE_DATA:
        pytest.skip("the data are sequences and optionals")
    if any(v.dtype in (DType.INT4, DType.UINT4) for v in (*graph.inputs, *graph.outputs)):
        pytest.skip("tensors of 4-bit elements cannot be passed to ONNX Runtime")
    try:
        pairs = _results(file, DATA / case, graph)
    except Exception as error:
        reason = _matching(MISSING_KERNELS, name)
        if reason is None or not re.search(r"NOT_IMPLEMENTED|layout", str(error)):
            raise
        pytest.skip(f"ONNX Runtime has no {reason}")
    if reason := _matching(DIFFERENT, name):
        pytest.skip(f"ONNX Runtime: {reason}")
    for found, expected in pairs:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        is_float = DType.of(found.dtype).is_floating
        pair = [a.astype(np.float64) if is_float else a for a in (found, expected)]
        np.testing.assert_allclose(*pair, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("pattern", [*MISSING_KERNELS, *DIFFERENT])
def test_every_pattern_matches_a_case(pattern: str) -> None:
    assert fnmatch.filter([case.rpartition("/")[2] for case in CASES], pattern)


def _matching(lines: dict[str, str], name: str) -> str | None:
    return next((reason for pattern, reason in lines.items() if fnmatch.fnmatch(name, pattern)), None)


def _results(model: Path, folder: Path, graph: Graph) -> list[tuple[Array, Array]]:
    """Return ONNX Runtime's result and the expected one for every output of every data set."""
    session = open_written(model)
    pairs: list[tuple[Array, Array]] = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [_array(data / f"input_{i}.pb", value) for i, value in enumerate(graph.inputs)]
        expected = [_array(data / f"output_{i}.pb", value) for i, value in enumerate(graph.outputs)]
        pairs += zip(run_written(session, inputs), expected, strict=True)
    assert pairs
    return pairs


def _array(file: Path, value: Value) -> Array:
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    array = read_tensor(tensor)
    return array.view(value.dtype.numpy) if value.dtype is DType.BFLOAT16 else array  # stored as uint16
