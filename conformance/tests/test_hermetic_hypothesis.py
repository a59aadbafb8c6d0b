"""Hypothesis in the suite: its settings stay as they were, and only the seed decides what it draws."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import configuration, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from lite_conformance.cases.hermetic import hermetic_hypothesis


def test_settings_of_hypothesis_are_restored() -> None:
    before = configuration.storage_directory("examples", intent_to_write=False).path
    find_constants = getattr(providers, "_get_local_constants", None)
    with hermetic_hypothesis():
        assert configuration.storage_directory("examples", intent_to_write=False).path != before
    assert configuration.storage_directory("examples", intent_to_write=False).path == before
    assert getattr(providers, "_get_local_constants", None) is find_constants


def test_drawn_examples_do_not_depend_on_imported_modules(tmp_path: Path) -> None:
    """Newer versions of hypothesis draw the numbers that they find in the modules of this process."""
    (tmp_path / "numbers_of_mine.py").write_text("NUMBERS = [" + ", ".join(str(7_000_000 + n) for n in range(99)) + "]")
    sys.path.insert(0, str(tmp_path))
    drawn: list[int] = []

    @settings(max_examples=500, database=None, derandomize=True)
    @given(st.integers())
    def draw(number: int) -> None:
        drawn.append(number)

    try:
        __import__("numbers_of_mine")
        with hermetic_hypothesis():
            draw()
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("numbers_of_mine", None)
    assert drawn
    assert not set(drawn) & set(range(7_000_000, 7_000_099))
