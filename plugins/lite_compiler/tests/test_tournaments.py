"""Tournaments: the fastest candidate is found, recorded, and used again; failures of candidates do not fail a run."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lite_compiler.tournaments.choice import Choice, choices_of_json, choices_to_json
from lite_compiler.tournaments.chooser import Chooser
from lite_compiler.tournaments.table import ChoiceTable
from lite_compiler.tournaments.turns import compare_in_turns
from lite_core.errors import ExecutionError

CHOICE = Choice("fast", 1e-6, "usual", 2e-6)
LOGGER = logging.getLogger("lite.test.tuning")


@pytest.fixture
def table(tmp_path: Path) -> ChoiceTable:
    return table_in(tmp_path)


def table_in(folder: Path) -> ChoiceTable:
    return ChoiceTable("a device", lambda: "version 1", folder, LOGGER)


# **** choosing ****


def choose(chooser: Chooser[str]) -> str:
    return chooser.choose("problem", ["usual", "slow", "fast"], lambda name: [name])


def timed(seconds: dict[str, float]) -> Callable[[Sequence[str], Sequence[str]], tuple[float, float]]:
    return lambda steps, others: (seconds[steps[0]], seconds[others[0]])


def test_fastest_candidate_is_chosen_and_remembered(table: ChoiceTable, tmp_path: Path) -> None:
    chooser = Chooser(table, timed({"usual": 2.0, "slow": 3.0, "fast": 1.0}))
    assert choose(chooser) == "fast"
    later = Chooser[str](table_in(tmp_path))
    assert not later.describe()
    assert choose(later) == "fast"
    assert later.used == {"problem": Choice("fast", 1.0, "usual", 2.0)}
    assert later.describe()
    assert later.describe() != chooser.describe()


def test_small_gains_keep_the_usual_candidate(table: ChoiceTable) -> None:
    assert choose(Chooser(table, timed({"usual": 2.0, "slow": 3.0, "fast": 1.99}))) == "usual"


def test_candidate_that_cannot_run_is_not_chosen(table: ChoiceTable) -> None:
    assert choose(Chooser(table, timed({"usual": 2.0, "slow": 3.0, "fast": math.inf}))) == "usual"


def test_usual_candidate_that_cannot_run_is_replaced(table: ChoiceTable) -> None:
    assert choose(Chooser(table, timed({"usual": math.inf, "slow": 3.0, "fast": 1.0}))) == "fast"


def test_nothing_is_measured_without_tuning(table: ChoiceTable) -> None:
    assert choose(Chooser[str](table)) == "usual"
    assert choose(Chooser[str]()) == "usual"


def test_choice_that_is_no_longer_a_candidate_is_measured_again(table: ChoiceTable) -> None:
    table.add("problem", CHOICE._replace(name="gone"))
    assert choose(Chooser[str](table)) == "usual"
    assert choose(Chooser(table, timed({"usual": 2.0, "slow": 1.0, "fast": 3.0}))) == "slow"


def test_concurrent_threads_measure_a_problem_once(table: ChoiceTable) -> None:
    measured: list[str] = []

    def compare(steps: Sequence[str], others: Sequence[str]) -> tuple[float, float]:
        measured.append(others[0])
        return 2.0, 3.0

    choosers = [Chooser(table, compare) for _ in range(8)]
    threads = [threading.Thread(target=choose, args=(chooser,)) for chooser in choosers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured == ["slow", "fast"]
    assert all(chooser.used for chooser in choosers)


# **** turns ****


def test_both_candidates_run_in_turns_and_keep_their_shortest_time() -> None:
    order: list[str] = []
    times = {"first": iter([3.0, 2.0, 5.0] + 500 * [4.0]), "second": iter([7.0, 6.0] + 500 * [8.0])}

    def run_of(name: str) -> Callable[[], float]:
        def run() -> float:
            order.append(name)
            return next(times[name])

        return run

    assert compare_in_turns(run_of("first"), run_of("second"), LOGGER) == (2.0, 6.0)
    assert order[:8] == ["first", "first", "second", "second"] * 2


def test_clear_difference_ends_a_comparison_early() -> None:
    counts = []
    for slower in (1.01e-6, 2e-6):
        runs: list[float] = []

        def other(seconds: float = slower, runs: list[float] = runs) -> float:
            runs.append(seconds)
            return seconds

        compare_in_turns(lambda: 1e-6, other, LOGGER)
        counts.append(len(runs))
    similar, clear = counts
    assert clear < similar


def test_candidate_whose_run_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> float:
        raise ExecutionError("out of registers")

    with caplog.at_level(logging.INFO, LOGGER.name):
        assert compare_in_turns(fails, lambda: 1.0, LOGGER) == (math.inf, 1.0)
    assert "out of registers" in caplog.text
    assert compare_in_turns(lambda: 1.0, None, LOGGER) == (1.0, math.inf)


# **** records ****


def test_choices_survive_json() -> None:
    assert choices_of_json(choices_to_json({"problem": CHOICE})) == {"problem": CHOICE}


@pytest.mark.parametrize(
    "damaged", [None, [], {"problem": {"name": "fast"}}, {"problem": {**CHOICE._asdict(), "seconds": "x"}}]
)
def test_damaged_choices_are_refused(damaged: object) -> None:
    with pytest.raises(TypeError):
        choices_of_json(damaged)
