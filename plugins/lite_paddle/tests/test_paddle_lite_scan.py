"""Operators with drawn attributes, shapes and element types, written for Paddle-Lite and run by its own predictor.

What Paddle-Lite cannot compute has to be refused: everything else computes what Lite computes, which
``test_scan.py`` compares with Paddle.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import program_of
from scan.drawing import Case, draw_cases, spaces
from scan.goldens import COUNT, SEED

from lite_core.errors import LiteError, UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.paddle_lite.placing import parse_targets
from lite_paddle.paddle_lite.writing import paddle_lite_program, write_naive_buffer
from lite_paddle.source import SourceOp, SourceProgram, SourceType, SourceValue

pytestmark = pytest.mark.full("paddle-lite")

Array = np.ndarray[Any, Any]
RUNNER = Path(__file__).parent / "paddle_lite_runner.py"
# Paddle-Lite computes like this version of Paddle.
VERSION = 2_004_002
# Operators that read offsets which only other operators of a model make, or whose drawn results have no elements.
LEFT_OUT = {"collect_fpn_proposals", "strided_slice", "var_conv_2d"}


def written(case: Case, file: Path) -> list[Array] | None:
    """Write a case for x86 and return the expected results; None if it is refused, or Lite does not have it."""
    try:
        program, feeds = program_of(
            case.op,
            case.inputs,
            case.attrs,
            outputs=case.outputs,
            parameters=case.parameters,
            lod=case.lod,
            version=VERSION,
        )
        graph = lower(program, lod=bool(case.lod))
        expected = evaluate_graph(graph, feeds)
    except LiteError:
        return None
    for (_, value), found in zip(program.outputs, graph.outputs):
        shape = tuple(dim if isinstance(dim, int) else -1 for dim in found.type.shape or ())
        value.type = value.type or SourceType(found.dtype.value, shape)
    # The wheel's numpy() repeats the first element of booleans.
    program.outputs = [(name, as_integer(program, value)) for name, value in program.outputs]
    try:
        write_naive_buffer(paddle_lite_program(program, parse_targets(["x86"])), file)
    except UnsupportedOperatorError:
        return None
    # Paddle-Lite has no other floats than float32.
    arrays = [array.astype(np.float32) if array.dtype.kind == "f" else array for array in feeds]
    levels = {name: case.lod.get(name.rpartition("_")[0]) for name, _ in program.inputs}
    offsets = {name: [list(level) for level in found] for name, found in levels.items() if found}
    file.with_suffix(".lod.json").write_text(json.dumps(offsets))
    np.savez(file.with_suffix(".inputs.npz"), **{name: array for (name, _), array in zip(program.inputs, arrays)})
    # The offsets of outputs, which are none of Paddle-Lite's outputs, are the last.
    return expected[: len(program.outputs)]


def as_integer(program: SourceProgram, value: SourceValue) -> SourceValue:
    if value.type is None or value.type.dtype != "bool":
        return value
    number = SourceValue(f"{value.name}_number", SourceType("int32", value.type.shape))
    program.block.ops.append(SourceOp("cast", {"X": [value]}, {"Out": [number]}, {"out_dtype": "int32"}))
    return number


@pytest.fixture(scope="module")
def results(paddle_lite_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[tuple[Any, ...]]]:
    """Run every case that is not refused; return operator -> (case, file, expected results)."""
    folder = tmp_path_factory.mktemp("scan")
    found: dict[str, list[tuple[Any, ...]]] = {}
    for number, case in enumerate(draw_cases(SEED, COUNT)):
        if case.op not in LEFT_OUT:
            file = folder / f"{number}.nb"
            expected = written(case, file)
            if expected is not None:
                found.setdefault(case.op, []).append((case, file, expected))
    subprocess.run([paddle_lite_python, RUNNER, folder], check=True)
    return found


@pytest.mark.parametrize("op", spaces())
def test_what_is_written_computes_the_same(op: str, results: Mapping[str, list[tuple[Any, ...]]]) -> None:
    if op not in results:
        pytest.skip("Paddle-Lite cannot compute any of the cases on x86, and every one is refused")
    for case, file, expected in results[op]:
        outputs = file.with_suffix(".outputs.npz")
        assert outputs.exists(), f"{case.attrs}: {file.with_suffix('.errors').read_text()[-500:]}"
        with np.load(outputs) as kept:
            for found, wanted in zip(kept.values(), expected, strict=True):
                # Paddle-Lite approximates exponentials with polynomials.
                np.testing.assert_allclose(
                    found.reshape(-1).astype(np.float64),
                    wanted.reshape(-1).astype(np.float64),
                    rtol=max(case.rtol, 1e-4),
                    atol=max(case.atol, 1e-4),
                    err_msg=str(case.attrs),
                )
