"""`kill -9` while files are written: afterwards the old or the new file is complete, and nothing piles up."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attempts import DEADLINE_SECONDS, load_and_run, tiny_model
from disturbing import (
    convert,
    disturb,
    environment,
    fill,
    left_behind,
    make_a_day_older,
    write_a_day_later,
)

from lite_core.container import ModelFile

KILLED = 9
RANDOM_KILLS = 60


def test_a_conversion_is_killed_at_a_few_calls(failing_files: Path, tmp_path: Path) -> None:
    """The full tier kills it at every call."""
    convert(tmp_path, "host")
    told = disturb(failing_files, tmp_path, "convert:host", "kill", first=2, step=4)
    assert {one["status"] for one in told} == {KILLED}
    assert left_behind(tmp_path)
    make_a_day_older(tmp_path)
    convert(tmp_path, "host")
    assert left_behind(tmp_path) == []


@pytest.mark.full("reliability")
def test_a_conversion_is_killed_at_each_call(failing_files: Path, tmp_path: Path) -> None:
    """The old file is for another target, which tells which of the two files is found."""
    fill(tmp_path, "x86")
    convert(tmp_path, "host")
    told = disturb(failing_files, tmp_path, "convert:x86", "kill")
    assert {one["status"] for one in told} == {KILLED}
    found = [tuple(one["after"]["targets"]) for one in told]
    assert found[0] == ("host",)
    assert {*found} == {("host",), ("x86",)}
    assert found == sorted(found), "after the new file was found, the old one was found again"
    write_a_day_later(tmp_path, "x86")
    convert(tmp_path, "x86")
    assert left_behind(tmp_path) == []


@pytest.mark.full("reliability")
@pytest.mark.parametrize("backend", ["x86", "opencl"])
def test_a_writer_of_the_cache_is_killed_at_each_call(failing_files: Path, tmp_path: Path, backend: str) -> None:
    fill(tmp_path, backend)
    told = disturb(failing_files, tmp_path, backend, "kill")
    assert {one["status"] for one in told} == {KILLED}
    assert not any(one["after"]["warnings"] for one in told)  # no entry was found damaged
    assert len(left_behind(tmp_path)) <= 2 * len(told)  # a temporary file and a lock
    write_a_day_later(tmp_path, backend)
    assert left_behind(tmp_path) == []


@pytest.mark.full("reliability")
def test_lite_convert_is_killed_at_random_moments(tmp_path: Path) -> None:
    """The command, with its start, its writes to the cache and its end."""
    model = tmp_path / "model.lite"
    chance = random.Random(13)

    def start(target: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lite_core", "convert", tiny_model(), "-o", model, "--targets", target]
        return subprocess.Popen(
            [*command, "--no-verify"], env={**os.environ, **environment(tmp_path)}, stdout=subprocess.DEVNULL
        )

    # The shortest time that a conversion took: most are killed before their end, also while the machine is busy.
    shortest = dict.fromkeys(("host", "x86"), float(DEADLINE_SECONDS))
    killed = 0
    for number in range(RANDOM_KILLS):
        target = ("host", "x86")[number % 2]
        begin, process = time.monotonic(), start(target)
        try:
            assert process.wait(shortest[target] * (chance.random() if number > 1 else 1)) == 0
            shortest[target] = min(shortest[target], time.monotonic() - begin)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(DEADLINE_SECONDS)
            killed += 1
        file = ModelFile.open(model)
        file.verify()
        result, _ = load_and_run(model, "x86")
        assert result.right, result
        if number % 10 == 0:
            for entry in sorted((tmp_path / "cache").rglob("*.kernel"))[::3]:
                entry.unlink()
    print(f"{killed} of {RANDOM_KILLS} conversions killed")
    assert killed > RANDOM_KILLS / 4
