"""The ONNX project's cases for single nodes, stamped with older opsets where these allow them, against ONNX Runtime.

What an operator means is then held for every version that it has, changes that only a text tells included.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx.defs
import pytest
from onnx import TensorProto, numpy_helper
from versions_models import OldModels, run_by_onnxruntime

from lite_core import ops
from lite_core.errors import LiteError

runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is what old versions are compared with")
if not onnx.__version__.startswith("1.17."):
    pytest.skip("the test data is in the wheel of onnx 1.17 only", allow_module_level=True)

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Sum", "SumSquare")
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
#: The oldest that ONNX Runtime runs.
OLDEST = 7
#: Where ONNX Runtime does something else at the case's own opset already.
DIFFERENT = {"test_maxunpool_export_with_output_shape"}
#: The element types that NumPy has, so that ONNX Runtime can be given them: without strings, bfloat16 and smaller ones.
COMMON_TYPES = {*range(TensorProto.FLOAT, TensorProto.INT64 + 1), *range(TensorProto.BOOL, TensorProto.UINT64 + 1)}
#: What no case of an operator allows: it has settings in each that are newer, or is of the oldest opset.
NEWER_ONLY = {"And", "GroupNormalization", "Or", "Scan", "Xor", *(f"Reduce{n}" for n in REDUCTIONS)}
#: Errors of ONNX Runtime.
REFUSALS = ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented")


def _cases() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in sorted(DATA.iterdir()):
        model = onnx.load(folder / "model.onnx")
        (node, *others) = model.graph.node
        is_simple = not others and not model.functions and folder.name not in DIFFERENT
        if is_simple and _has_common_types(model.graph) and ops.find(node.op_type, node.domain):
            found[node.op_type].append(folder)
    return {op: folders for op, folders in found.items() if len(_starts(op)) > 1 and op not in NEWER_ONLY}


def _has_common_types(graph: Any) -> bool:
    values = (*graph.input, *graph.output)
    return all(value.type.tensor_type.elem_type in COMMON_TYPES for value in values)


def _starts(op: str) -> set[int]:
    """The opsets in which the versions of an operator begin."""
    return {s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op)}


def _versions(op: str, newest: int) -> Iterator[int]:
    """The first and the last opset of every version of an operator before that of a case."""
    starts = _starts(op)
    for version in sorted({*starts, *(start - 1 for start in starts)}):
        if max(OLDEST, min(starts)) <= version < newest:
            yield version


def _inputs(folder: Path) -> list[Any]:
    data, arrays = folder / "test_data_set_0", []
    for number in itertools.count():
        path = data / f"input_{number}.pb"
        if not path.exists():
            return arrays
        arrays.append(numpy_helper.to_array(TensorProto.FromString(path.read_bytes())))
    return arrays


def _by_onnxruntime(model: Any, inputs: dict[str, Any]) -> list[Any] | None:
    """What it gives; None where the opset has no such node, or ONNX Runtime no kernel for it."""
    state = runtime.capi.onnxruntime_pybind11_state
    try:
        onnx.checker.check_model(model)
        return run_by_onnxruntime(model, inputs)
    except tuple(getattr(state, name) for name in REFUSALS):
        return None
    except (onnx.checker.ValidationError, RuntimeError):
        return None


@pytest.mark.parametrize("op", CASES := _cases())
def test_older_versions(op: str, tmp_path: Path) -> None:
    models, compared = OldModels(tmp_path), 0
    for folder in CASES[op]:
        model = onnx.load(folder / "model.onnx")
        inputs = {value.name: a for value, a in zip(model.graph.input, _inputs(folder))}
        try:
            models.run(model, inputs)
        except (LiteError, ValueError):  # an element type that Lite has not, or training
            continue
        model.ir_version = min(model.ir_version, 8)
        for version in _versions(op, model.opset_import[0].version):
            model.opset_import[0].version = version
            expected = _by_onnxruntime(model, inputs)
            if expected is None:
                continue
            compared += 1
            for ours, theirs in zip(models.run(model, inputs), expected, strict=True):
                what = f"{folder.name} at opset {version}"
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
                np.testing.assert_allclose(
                    ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-3, atol=1e-5, err_msg=what
                )
    assert compared > 0
