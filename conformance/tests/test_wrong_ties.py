"""Tests of the cases of ties, rounding, indices out of range and empty tensors: each finds its mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wrong_ties

from lite_conformance import Record, Status, check_backend
from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import all_tables
from lite_core.ir import DType
from lite_core.ops.resize import resize

FILE = Path(__file__).with_name("wrong_ties.py")

#: The cases that find each mistake, all of them in the list of policies.
FOUND_BY = {
    "takes_the_last": ["ArgMax[*,ties,*", "ArgMin[*,ties,*"],
    "takes_the_best_lane": ["ArgMax[*,ties,41x41,first]"],
    "ranks_from_the_end": ["TopK[*,ties,*largest]", "TopK[*,ties,*smallest]"],
    "suppresses_the_first": ["NonMaxSuppression[*,ties,*"],
    "rounds_half_up": ["Round[*,edges]"],
    "quantizes_half_away": ["QuantizeLinear[*,halves-to-even*", "QuantizeLinear[*,halves-at-the-limits*"],
    "quantizes_by_truncation": ["QuantizeLinear[*,halves-to-even*"],
    "saturates_integers": ["Cast[*,wraps,to-*"],
    "casts_to_the_nearest": ["Cast[*,limits,*", "Cast[*,beyond,*"],
    "casts_by_way_of_int64": ["Cast[f32,limits,to-u64]"],
    "cuts_bfloat16": ["Cast[f32,halves,to-bf16]"],
    "prefers_the_other_neighbour": ["Resize[*,nearest,halves,*round_prefer*"],
    "samples_half_up": ["GridSample[*,nearest,half-way,*"],
    "hides_the_node": ["out-of-range[Gather,*"],
    "stays_in_error": ["out-of-range[Gather,*64]", "out-of-range[Gather,*32]"],
    "spoils_the_rest": ["out-of-range[Gather,*64]", "out-of-range[Gather,*32]"],
    "writes_anywhere": ["out-of-range[ScatterND,none,rows]"],
    "is_zero_over_nothing": ["Reduce*[f32,over-nothing,*"],
    "averages_padding": ["AveragePool[*,over-nothing,padding-only]"],
}
#: Backends that compute some value for an index out of range instead of raising an error.
ALLOWED = ("takes_the_nearest_row", "fills_with_nan")


def run(name: str, cases: list[str]) -> list[Record]:
    return check_backend(wrong_ties.BACKENDS[name], cases=cases)


@pytest.mark.parametrize("name", FOUND_BY)
def test_mistake_is_found_by_each_kind_of_case(name: str) -> None:
    for pattern in FOUND_BY[name]:
        records = run(name, [pattern])
        assert any(r.status is Status.FAILED for r in records), f"no case of {pattern} finds {name}"
        assert not any(r.status is Status.ERROR for r in records), [r.reason for r in records]


@pytest.mark.parametrize("name", ALLOWED)
def test_values_instead_of_an_error_are_allowed(name: str) -> None:
    records = run(name, ["out-of-range[Gather,axis0,i64*", "Gather[f32,*ends]", "Gather[f32,*axis1*"])
    assert {r.status for r in records} == {Status.PASSED}, [r.reason for r in records if r.status.is_bad]


@pytest.mark.full("conformance")
def test_reading_outside_crashes_into_a_guard_page() -> None:
    records = check_backend(f"{FILE}:backend_reads_anywhere", cases=["out-of-range[Gather,axis0,i64]"])
    assert [r.status for r in records] == [Status.CRASHED]


@pytest.mark.full("conformance")
def test_error_in_another_thread_is_found() -> None:
    # Several cases, because a single one may miss the moment in which the threads meet.
    records = run("shares_its_error", ["out-of-range[Gather,*64]", "out-of-range[Gather,*32]"])
    assert any(r.status is Status.FAILED for r in records)


def test_every_mistake_is_tested() -> None:
    assert {*FOUND_BY, *ALLOWED, "reads_anywhere", "shares_its_error"} == set(wrong_ties.BACKENDS)


# **** the suite asks for no rounding that depends on the arithmetic ****


def _onnx_coordinates(transformation: str, old: int, new: int, scale: Any, real: Any) -> Any:
    """Return the coordinates of ONNX's formulas, computed step by step in a floating type."""
    x, half = np.arange(new).astype(real), real(0.5)
    if transformation == "align_corners":
        return x * real(old - 1) / real(max(new - 1, 1))
    if transformation == "asymmetric":
        return x / real(scale)
    if transformation == "pytorch_half_pixel" and new == 1:
        return x
    coordinates = (x + half) / real(scale) - half
    if transformation == "half_pixel_symmetric":
        centre = real(old) / real(2)
        coordinates = coordinates + centre * (1 - real(new) / (real(scale) * real(old)))
    return coordinates


_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _resized_lines() -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Yield the name, the old and new size, and the attributes of each axis of the cases with halves."""
    all_tables()
    for name, dtype, case in table_of("Resize").cases():
        if dtype is DType.FLOAT32 and case.label.startswith("nearest,halves"):
            x, *_, sizes = case.inputs
            assert x is not None
            assert sizes is not None
            for old, new in zip(x.shape, sizes.make(np.random.default_rng(0), dtype).tolist()):
                yield name, old, new, case.attributes


def test_nearest_neighbours_of_resize_are_the_same_in_float32_and_float64() -> None:
    lines = list(_resized_lines())
    assert lines
    defaults = {key: spec.default for key, spec in table_of("Resize").definition.attributes.items()}
    for name, old, new, attributes in lines:
        given: dict[str, Any] = {**defaults, **attributes, "mode": "nearest"}
        line = np.arange(old, dtype=np.float32)
        expected = resize(line, None, None, np.array([new]), **given).astype(int).tolist()
        rounding = _ROUNDINGS[given["nearest_mode"]]
        rounded_scale = np.float32(new / old)
        for real, scale in ((np.float32, rounded_scale), (np.float64, rounded_scale), (np.float64, new / old)):
            transformation = given["coordinate_transformation_mode"]
            found = rounding(_onnx_coordinates(transformation, old, new, scale, real))
            assert np.clip(found, 0, old - 1).astype(int).tolist() == expected, f"{name}: {old} to {new}, {real}"
