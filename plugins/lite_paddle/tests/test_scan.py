"""The scan of Paddle's operators: drawn attributes, shapes and element types, against what Paddle makes of them.

Stored results of Paddle 2.6.2 and 3.3.1 are compared in both tiers; the full tier also runs new cases with the
installed Paddle. ``python plugins/lite_paddle/tests/scan/make_goldens.py --help`` says how to scan more by hand.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from paddle_cases import paddle_is_installed
from scan.comparing import disagreement
from scan.drawing import Case, draw_cases, spaces
from scan.elsewhere import elsewhere
from scan.goldens import COUNT, SEED, VERSIONS, digest, read
from scan.paddle_process import CRASHED, is_absent, run_cases

from lite_paddle.lowering.operators import supported_ops

TESTS = Path(__file__).parent
#: Seed of the cases of the full tier; printed, and repeated with ``LITE_SCAN_SEED=NUMBER``.
FRESH_SEED = int(os.environ.get("LITE_SCAN_SEED", time.strftime("%Y%m%d")))
FRESH_COUNT = 6
#: Operators whose attributes were once lowered to something else.
ONCE_DIFFERENT = (
    "fake_quantize_dequantize_moving_average_abs_max",
    "fill_diagonal",
    "isclose",
    "matrix_power",
    "pool2d",
    "quantize_linear",
    "reduce_sum",
    "strided_slice",
    "triangular_solve",
    "trilinear_interp_v2",
    "unique_with_counts",
)


def _compared(cases: list[Case], versions: dict[str, list[int]] | list[int], *, is_open: bool = False) -> list[str]:
    stored = read()
    found = []
    for case in cases:
        mark, outputs = stored[case.name]
        assert mark == digest(case), f"{case.name} is drawn differently now: run scan/make_goldens.py"
        for number in versions if isinstance(versions, list) else versions[case.name]:
            expected = outputs[number]
            difference = None if expected is None else disagreement(case, VERSIONS[number], expected, is_open=is_open)
            if difference:
                found.append(f"{case.name} of Paddle {VERSIONS[number]}, {case.attrs}: {difference}")
    return found


def test_results_of_paddle() -> None:
    """One case of each operator, the versions of Paddle in turn; all cases of those that once differed."""
    assert not _compared(draw_cases(SEED, COUNT, ONCE_DIFFERENT), [0, 1])
    cases = draw_cases(SEED, 1)
    outputs = read()
    has = {case.name: [n for n in (0, 1) if outputs[case.name][1][n] is not None] for case in cases}
    versions = {case.name: has[case.name][index % 2 :][:1] or has[case.name][:1] for index, case in enumerate(cases)}
    assert not _compared(cases, versions)


@pytest.mark.full("paddle-lite")
@pytest.mark.parametrize("is_open", [False, True])
def test_all_results_of_paddle(is_open: bool) -> None:
    """All stored cases; also of models whose inputs have no fixed sizes."""
    cases = draw_cases(SEED, COUNT)
    assert not _compared(cases, [0, 1], is_open=is_open)


@pytest.mark.full("paddle-lite")
def test_new_cases() -> None:
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it computes what is expected")
    print(f"LITE_SCAN_SEED={FRESH_SEED}")
    cases = draw_cases(FRESH_SEED, FRESH_COUNT)
    found, compared = [], set()
    for case, result in zip(cases, run_cases(cases, sys.executable)):
        if not isinstance(result, str):
            compared.add(case.op)
            difference = disagreement(case, VERSIONS[1], result)
            found += [f"{case.name} with LITE_SCAN_SEED={FRESH_SEED}, {case.attrs}: {difference}"] if difference else []
        elif not is_absent(result) and result != CRASHED:
            found.append(f"{case.name} with LITE_SCAN_SEED={FRESH_SEED}: Paddle refuses it: {result}")
    assert not found
    assert "conv2d" in compared


def test_every_operator_has_a_result() -> None:
    """Every space has results of some version, so that no operator is left out silently."""
    compared = {name.rpartition("-")[0] for name, (_, outputs) in read().items() if any(outputs)}
    assert sorted(set(spaces()) - compared) == []


def test_other_operators_are_listed() -> None:
    """Every operator that lite-paddle lowers is scanned, or listed with the test that has it.

    A new one needs a function in scan/spaces, after which scan/make_goldens.py is run, or a line in scan/elsewhere.txt.
    """
    listed = elsewhere()
    assert sorted(set(supported_ops()) - set(spaces()) - set(listed)) == []
    assert sorted(set(listed) & set(spaces())) == []
    texts = {test.partition("::")[0] for test in listed.values()}
    files = {name: (TESTS / name).read_text() for name in texts}
    for operator, test in listed.items():
        file, _, function = test.partition("::")
        assert f"\ndef {function}(" in files[file], f"{operator} is said to be tested by {test}, which does not exist"
