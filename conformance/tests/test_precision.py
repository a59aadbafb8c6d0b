"""Precision levels: right rounding passes at its level, wrong rounding fails, and float32 stays strict."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

import low_precision_backends
import numpy as np
import pytest
from graph_backends import Walker, subject_of
from low_precision_backends import PRODUCTS

from lite_conformance import Record, Status
from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.catalogue import all_cases, possible_cases
from lite_conformance.judge.outcome import Replay
from lite_conformance.judge.precision import LEVELS, half_steps, round_at_random, round_to_nearest
from lite_conformance.run.executor import execute
from lite_conformance.run.expectations import read_expectations
from lite_conformance.run.repro import write_script
from lite_core.backend import Device
from lite_core.errors import InputError
from lite_core.ir import DType

BACKENDS = {
    **low_precision_backends.RIGHT,
    **low_precision_backends.WRONG,
    **low_precision_backends.OTHER_DECISIONS,
    **low_precision_backends.WRONG_DECISIONS,
}
#: One length for each kind of error, so that the fast tests stay fast.
FEW = (
    "precision[MatMul,k2,positive]",
    "precision[MatMul,k1024,positive]",
    "precision[MatMul,k1024,mixed]",
    "precision[Conv,c32,k3,scales-of-channels]",
)
FLOATS = (DType.FLOAT16, DType.BFLOAT16)
#: Operators whose outputs have integers or booleans, or floating numbers that a small error changes much.
DECIDING = (
    *("ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "DynamicQuantizeLinear", "Equal", "Floor", "Greater"),
    *("GreaterOrEqual", "GridSample", "Hardmax", "IsInf", "IsNaN", "Less", "LessOrEqual", "MaxPool", "Mod"),
    *("NonMaxSuppression", "NonZero", "OneHot", "RoiAlign", "Round", "Shrink", "Sign"),
    *("ThresholdedRelu", "TopK", "Unique", "lite.BipartiteMatch", "lite.CollectFpnProposals"),
    *("lite.DistributeFpnProposals", "lite.GenerateProposals", "lite.MatrixNms", "lite.MulticlassNms"),
    *("lite.PsRoiPool", "lite.RoiPool", "lite.YoloBox"),
)
#: Those of them that decide how large their outputs are.
RESIZING = (
    *("NonMaxSuppression", "NonZero", "Unique", "lite.CollectFpnProposals", "lite.DistributeFpnProposals"),
    *("lite.GenerateProposals", "lite.MatrixNms", "lite.MulticlassNms"),
)


@cache
def cases_at(level: str, head: str) -> dict[str, Case]:
    return {case.name: case for case in possible_cases(Settings("x", precision=level), patterns=[f"{head}["])}


def run(name: str, level: str, *cases: str) -> list[Record]:
    """Run cases of one part of the suite on a backend; all cases of the precision levels when none are given."""
    subject = subject_of(BACKENDS[name][0])
    found = cases_at(level, cases[0].partition("[")[0] if cases else "precision")
    context = Context(subject, Settings(subject.backend.name, precision=level))
    return [execute(found[case], context) for case in cases or found]


def bad(records: list[Record]) -> list[str]:
    return [f"{r.case}: {r.reason}" for r in records if r.status.is_bad]


@pytest.mark.parametrize("name", low_precision_backends.RIGHT)
def test_right_rounding_passes_at_its_level(name: str) -> None:
    assert bad(run(name, BACKENDS[name][1], *FEW)) == []


@pytest.mark.parametrize("name", low_precision_backends.RIGHT)
def test_any_rounding_fails_in_float32(name: str) -> None:
    (record,) = run(name, "float32", "MatMul[f32,33x257,257x7,constant]")
    assert record.status is Status.FAILED
    assert record.precision == ""


@pytest.mark.parametrize("name", low_precision_backends.WRONG)
def test_wrong_rounding_fails_at_its_level(name: str) -> None:
    assert bad(run(name, BACKENDS[name][1], *FEW))


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("truncates_bfloat16", "MatMul,k1024,positive"),
        ("truncates_int8", "MatMul,k1024,positive"),
        ("sums_in_blocks_float16", "MatMul,k1024,positive"),
        ("sums_in_blocks_bfloat16", "MatMul,k1024,positive"),
        ("noisy_float16", "MatMul,k1024,mixed"),
        ("drops_zero_point", "MatMul,k1024,mixed"),
        ("wrong_channel_scale", "Conv,c32,k3,scales-of-channels"),
        ("saturates", "MatMul,k2,positive"),
    ],
)
def test_case_that_catches_an_error(name: str, case: str) -> None:
    (record,) = run(name, BACKENDS[name][1], f"precision[{case}]")
    assert record.status is Status.FAILED


@pytest.mark.full("conformance")
@pytest.mark.parametrize("name", low_precision_backends.RIGHT)
def test_right_rounding_passes_at_every_length(name: str) -> None:
    assert bad(run(name, BACKENDS[name][1])) == []


@pytest.mark.full("conformance")
@pytest.mark.parametrize("name", ["stores_float16", "everywhere_bfloat16", "zero_point_int8"])
def test_right_rounding_raises_no_false_alarm(name: str) -> None:
    """In the networks and graphs of the suite, all float32 cases of products and of operators that decide, and others.

    Of the other operators, the hash of a case's name chooses one case of four: the three levels choose the same ones.
    """
    level = BACKENDS[name][1]
    subject = subject_of(BACKENDS[name][0])
    settings = Settings(name, precision=level)
    found = [c for c in all_cases(settings) if c.level in (2, 3, 4) and c.dtype in ("", "float32")]
    chosen = [case for case in found if case.suite != "onnx" and _is_chosen(case)]
    assert {*DECIDING, *PRODUCTS} <= {case.op for case in chosen}
    assert bad([execute(case, Context(subject, settings)) for case in chosen]) == []


def _is_chosen(case: Case) -> bool:
    always = case.suite != "ops" or case.op in DECIDING or case.op in (*PRODUCTS, *low_precision_backends.RECURRENT)
    return always or zlib.crc32(case.name.encode()) % 4 == 0


# **** decisions ****


def decisions_of(op: str) -> list[str]:
    """Return the names of an operator's handwritten cases in float32."""
    found = cases_at("bfloat16-everywhere", op).values()
    return [c.name for c in found if c.dtype == "float32" and c.suite == "ops" and not c.name.endswith(",drawn]")]


@pytest.mark.parametrize(
    "case",
    [
        "NonMaxSuppression[f32,long-list]",
        "Unique[f32,beyond-16-bits,results]",
        "lite.DistributeFpnProposals[f32,long-list]",
        "lite.MulticlassNms[f32,long-list]",
    ],
)
def test_result_of_the_size_that_rounded_operands_have_is_judged(case: str) -> None:
    (record,) = run("everywhere_bfloat16", "bfloat16-everywhere", case)
    assert record.status is Status.PASSED
    assert "exact for operands rounded" in record.reason


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("Unique[f32,beyond-16-bits,results]", "the size of output_0 depends on rounding (shape ["),
        ("CastLike[f32,to-i8,5x7]", "element(s) of output_0 depend on rounding, not compared"),
    ],
)
def test_record_says_what_depends_on_rounding(case: str, reason: str) -> None:
    (record,) = run("rounds_some", "bfloat16-everywhere", case)
    assert record.status is Status.PASSED
    assert reason in record.reason


def test_size_beyond_those_of_the_simulations_is_wrong() -> None:
    (record,) = run("drops_rows", "bfloat16-everywhere", "Unique[f32,beyond-16-bits,results]")
    assert record.status is Status.FAILED
    assert "has shape [405], expected [49200]" in record.reason


@pytest.mark.full("conformance")
@pytest.mark.parametrize("op", DECIDING)
def test_decisions_on_some_rounded_operands_raise_no_false_alarm(op: str) -> None:
    assert bad(run("rounds_some", "bfloat16-everywhere", *decisions_of(op))) == []


@pytest.mark.full("conformance")
@pytest.mark.parametrize("op", DECIDING)
def test_wrong_decision_fails_at_the_level_with_the_most_rounding(op: str) -> None:
    assert bad(run("off_by_one", "bfloat16-everywhere", *decisions_of(op)))


@pytest.mark.full("conformance")
@pytest.mark.parametrize("op", RESIZING)
def test_wrong_number_of_chosen_elements_fails_at_the_level_with_the_most_rounding(op: str) -> None:
    assert bad(run("drops_rows", "bfloat16-everywhere", *decisions_of(op)))


@pytest.mark.full("conformance")
@pytest.mark.parametrize("name", ["drops_zero_point", "wrong_channel_scale", "noisy_bfloat16", "noisy_float16"])
def test_wrong_rounding_lowers_the_signal_to_noise_ratio_of_networks(name: str) -> None:
    records = run(name, BACKENDS[name][1], *(f"model[{network}]" for network in ("upscaler", "sequence_transformer")))
    assert any("SNR" in line for line in bad(records))


def test_record_of_a_network_has_its_signal_to_noise_ratio() -> None:
    (record,) = run("right_bfloat16", "bfloat16", "model[glyph_classifier]")
    assert record.status is Status.PASSED
    assert record.precision == "bfloat16"
    assert "probabilities: SNR " in record.reason
    assert "top-1 agreement 100" in record.reason
    assert record.repro.endswith("--precision bfloat16")


def test_record_says_that_a_result_is_as_exact_as_float32() -> None:
    context = Context(subject_of(Walker()), Settings("walker", precision="float16"))
    record = execute(cases_at("float16", "MatMul")["MatMul[f32,3x4,4x5]"], context)
    assert record.status is Status.PASSED
    assert "as exact as float32" in record.reason


def test_backend_without_the_option_is_unsupported_in_int8() -> None:
    context = Context(subject_of(Walker()), Settings("walker", precision="int8"))
    found = {**cases_at("int8", "MatMul"), **cases_at("int8", "Add"), **cases_at("int8", "model")}
    product, network = (execute(found[name], context) for name in ("MatMul[f32,3x4,4x5]", "model[upscaler]"))
    assert product.status is network.status is Status.UNSUPPORTED
    assert "no precision option" in product.reason
    assert "no precision option" in network.reason
    assert execute(found["Add[f32,2x3]"], context).status is Status.PASSED  # int8 changes products only


def test_value_that_the_backend_does_not_know_is_unsupported() -> None:
    class Picky(Walker):
        def check_options(self, options: object) -> None:
            raise InputError("picky knows no option 'precision'")

    context = Context(subject_of(Picky()), Settings("walker", precision="int8"))
    record = execute(cases_at("int8", "MatMul")["MatMul[f32,3x4,4x5]"], context)
    assert record.status is Status.UNSUPPORTED
    assert "picky knows no option" in record.reason


def test_only_float32_cases_ask_for_the_precision() -> None:
    asked: list[str] = []

    class Listens(Walker):
        def compile(self, part: object, device: Device, options: object) -> object:  # type: ignore[override]
            asked.append(options.precision)  # type: ignore[attr-defined]
            return super().compile(part, device, options)  # type: ignore[arg-type]

    context = Context(subject_of(Listens()), Settings("walker", precision="bfloat16"))
    for name in ("MatMul[f32,3x4,4x5]", "MatMul[f64,3x4,4x5]"):
        execute(cases_at("bfloat16", "MatMul")[name], context)
    assert asked == ["bfloat16", "float32"]


def test_unknown_level_is_an_error_that_lists_the_levels() -> None:
    with pytest.raises(InputError, match=r"float32.*bfloat16.*int8.*'int3'"):
        Settings("x", precision="int3")


def test_cases_of_precision_exist_only_under_a_level() -> None:
    assert not cases_at("float32", "precision")
    assert len(cases_at("bfloat16", "precision")) > 30


# **** grids ****


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_step_is_the_largest_error_of_rounding(dtype: DType) -> None:
    numbers = np.random.default_rng(0).standard_normal(20_000) * 10.0 ** np.arange(-2, 2)[:, None, None]
    error = np.abs(round_to_nearest(numbers, dtype) - numbers)
    steps = half_steps(numbers, dtype)
    assert (error <= steps).all()
    assert (error / steps).max() > 0.99


def test_half_step_of_int8_is_half_a_scale_for_each_channel() -> None:
    steps = half_steps(np.array([[127.0, 1.0], [2.54, -0.3]]), DType.INT8, axis=0)
    assert np.allclose(steps, [[0.5, 0.5], [0.01, 0.01]])
    assert np.isinf(half_steps(np.array([1.0, np.nan]), DType.INT8)).all()


def test_numbers_beyond_float16_have_no_bound_and_subnormal_ones_may_become_zero() -> None:
    steps = half_steps(np.array([65504.0, 70000.0, -1e9, 1e-6, 0.0]), DType.FLOAT16)
    assert steps.tolist() == [16.0, np.inf, np.inf, 1e-6, 0.0]


@pytest.mark.parametrize("dtype", [*FLOATS, DType.INT8])
def test_random_rounding_has_no_bias_and_keeps_numbers_of_the_grid(dtype: DType) -> None:
    random = np.random.default_rng(0)
    numbers = random.standard_normal(100_000)
    rounded = round_at_random(numbers, dtype, random)
    steps = half_steps(numbers, dtype)
    assert (np.abs(rounded - numbers) <= 2 * steps * (1 + 1e-9)).all()
    assert abs(np.mean((rounded - numbers) / steps)) < 0.02
    kept = round_to_nearest(numbers, dtype)
    assert np.allclose(round_at_random(kept, dtype, random), kept, rtol=1e-12)


def test_levels_are_named_after_themselves() -> None:
    assert all(name == level.name for name, level in LEVELS.items())


def test_entry_of_the_package_is_for_one_level(tmp_path: Path) -> None:
    file = tmp_path / "conformance.toml"
    file.write_text('[[xfail]]\ncase = "Conv[f32,*]"\nreason = "Winograd"\nprecision = "float16"\n')
    entries = read_expectations(file)
    assert entries.at("float16").find("xfail", "Conv[f32,x]") is not None
    assert entries.at("float32").find("xfail", "Conv[f32,x]") is None
    file.write_text('[[xfail]]\ncase = "*"\nreason = "?"\nprecision = "half"\n')
    with pytest.raises(InputError, match=r"bfloat16.*'half'"):
        read_expectations(file)


@pytest.mark.parametrize(
    ("level", "argument"),
    [
        ("bfloat16", "precision='bfloat16'"),
        ("int8", """backend_options={'x86': {"precision": 'int8'}}"""),
        ("float32", ""),
    ],
)
def test_script_of_a_failure_asks_for_the_precision(tmp_path: Path, level: str, argument: str) -> None:
    case = "MatMul[f32,3x4,4x5]"
    found = cases_at("bfloat16", "MatMul")
    replays: list[Replay] = []
    execute(
        found[case], Context(subject_of(BACKENDS["noisy_bfloat16"][0]), Settings("x", precision=level)), replays.append
    )
    text = write_script(tmp_path, case, Settings("x86", precision=level), replays[0]).read_text()
    (line,) = [line for line in text.splitlines() if "lite.load(" in line]
    assert argument in line
    assert ("precision" in line) == bool(argument)
