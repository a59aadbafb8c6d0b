"""ONNX's node tests with older opset numbers, compared with ONNX Runtime.

This checks the meaning of every version of an operator, including changes that only the specification's text mentions.
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

pytestmark = pytest.mark.full("onnx")

runtime: Any = pytest.importorskip("onnxruntime", reason="old versions are compared with ONNX Runtime")
if not onnx.__version__.startswith("1.17."):
    pytest.skip("the test data is in the wheel of onnx 1.17 only", allow_module_level=True)

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Sum", "SumSquare")
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
#: The oldest opset that ONNX Runtime runs.
OLDEST_OPSET = 7
#: Cases that ONNX Runtime fails at their own opset, too.
DIFFERENT = {"test_maxunpool_export_with_output_shape"}
#: The element types that can be passed to ONNX Runtime as NumPy arrays: no strings, bfloat16 or narrower types.
COMMON_TYPES = {*range(TensorProto.FLOAT, TensorProto.INT64 + 1), *range(TensorProto.BOOL, TensorProto.UINT64 + 1)}
#: Operators without a case for older opsets: all their cases need newer features.
NEWER_ONLY = {"And", "GroupNormalization", "Or", "Scan", "Xor", *(f"Reduce{n}" for n in REDUCTIONS)}
#: The errors of ONNX Runtime for models that it does not support.
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
    """Return the first opset of every version of an operator."""
    return {s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op)}


def _versions(op: str, newest: int) -> Iterator[int]:
    """Yield the first and last opset of every version of an operator that is older than a case's opset."""
    starts = _starts(op)
    for version in sorted({*starts, *(start - 1 for start in starts)}):
        if max(OLDEST_OPSET, min(starts)) <= version < newest:
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
    """Run a model with ONNX Runtime; None if the opset has no such node, or ONNX Runtime has no kernel for it."""
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
    models, was_compared = OldModels(tmp_path), False
    for folder in CASES[op]:
        model = onnx.load(folder / "model.onnx")
        inputs = {value.name: a for value, a in zip(model.graph.input, _inputs(folder))}
        try:
            models.run(model, inputs)
        except (LiteError, ValueError):  # an unsupported element type, or training
            continue
        model.ir_version = min(model.ir_version, 8)
        for version in _versions(op, model.opset_import[0].version):
            model.opset_import[0].version = version
            expected = _by_onnxruntime(model, inputs)
            if expected is None:
                continue
            was_compared = True
            for ours, theirs in zip(models.run(model, inputs), expected, strict=True):
                label = f"{folder.name} at opset {version}"
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), label
                np.testing.assert_allclose(
                    ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-3, atol=1e-5, err_msg=label
                )
    assert was_compared
