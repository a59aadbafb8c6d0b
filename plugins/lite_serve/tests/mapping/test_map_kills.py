"""Tests of runs that end at any moment: what is finished is kept, and every row is there once, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from mapping_samples import dense_model, expected, lite_map, lite_map_json, numbers, result, table_of

SCRIPT = Path(__file__).with_name("killing_run.py")
ROWS = 400

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills by SIGKILL")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and a dataset of ten parts in two files.

    Killed runs have a cache of their own, and ask no backend for devices: one that is killed then is not asked again.
    """
    monkeypatch.setenv("LITE_BACKENDS", "host")
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    dense_model(tmp_path)
    (tmp_path / "in").mkdir()
    table = table_of(ROWS)
    pq.write_table(table[:240], tmp_path / "in/a.parquet", row_group_size=40)
    pq.write_table(table[240:], tmp_path / "in/b.parquet", row_group_size=40)
    (tmp_path / "slow.py").write_text(
        "import time\n\ndef wait(rows):\n    time.sleep(0.01)\n    return rows\n", encoding="utf-8"
    )
    return tmp_path


WORDS = ("dense.lite", "in", "-o", "out", "--part-rows", "40", "--batch", "16")


def check_complete(place: Path) -> None:
    """Check that every row of the input is in the output once, in order, with the bits that the model computes."""
    found, wanted = result(place / "out"), expected(place / "dense.lite", numbers(ROWS), 16, 40)
    assert np.array_equal(found["id"].to_numpy(), np.arange(ROWS))
    assert found["s"].to_numpy().tobytes() == wanted["s"].tobytes()
    assert found["y"].combine_chunks().flatten().to_numpy().tobytes() == wanted["y"].tobytes()
    assert not [path for path in (place / "out").iterdir() if path.name.startswith(".")]


def finished_parts(place: Path) -> int:
    manifest = place / "out/_manifest.jsonl"
    return manifest.read_bytes().count(b'"kind": "part"') if manifest.exists() else 0


def lines(place: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (place / "out/_manifest.jsonl").read_text().splitlines()]


FULL = pytest.mark.full("serving")


@pytest.mark.parametrize(
    "point",
    [
        "half",
        pytest.param("before-rename", marks=FULL),
        pytest.param("after-rename", marks=FULL),
        pytest.param("before-line", marks=FULL),
        pytest.param("after-line", marks=FULL),
    ],
)
def test_run_that_is_killed_goes_on(place: Path, point: str) -> None:
    """The first renaming is that of the manifest itself, so that `after-rename` 3 is the third part."""
    killed = subprocess.run([sys.executable, SCRIPT, point, "3", *WORDS, "--workers", "1"], cwd=place)
    assert killed.returncode == -9
    after = lite_map_json(*WORDS, folder=place)
    expected = {"before-rename": 2, "after-rename": 2, "before-line": 3, "half": 3, "after-line": 4}[point]
    assert after["finished_before"] == expected
    assert (after["complete"], after["rows"]) == (True, ROWS)
    assert [line["kind"] for line in lines(place)] == ["job", *["part"] * 10, "finished"]
    check_complete(place)


@FULL
def test_run_that_is_killed_at_random_moments_ends(place: Path) -> None:
    choose = random.Random(26)
    slow = (*WORDS, "--before", "slow:wait")
    counts, is_over = [0], False
    while not is_over:
        process = subprocess.Popen([sys.executable, "-m", "lite_core", "map", *slow], cwd=place)
        if choose.random() < 0.7:  # else while it starts
            while process.poll() is None and finished_parts(place) == counts[-1]:
                time.sleep(0.002)
        time.sleep(choose.uniform(0, 0.05))
        process.kill()
        is_over = process.wait() == 0
        counts.append(finished_parts(place))
    assert len(counts) > 2
    assert counts == sorted(counts)  # no finished part is ever done again
    after = lite_map_json(*slow, folder=place)
    assert (after["complete"], after["rows"], after["finished_before"]) == (True, ROWS, 10)
    check_complete(place)


@FULL
def test_interrupted_run_says_how_to_go_on(place: Path) -> None:
    words = [*WORDS, "--batch", "1", "--before", "slow:wait"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lite_core", "map", *words],
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a background job ignores
    )
    while finished_parts(place) == 0:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1]
    assert process.returncode == 1
    assert "error: interrupted: " in error
    assert error.endswith(f"next: lite map {' '.join(words)}\n")
    assert not list((place / "out").glob(".*"))
    assert lite_map_json(*words, folder=place)["finished_before"] >= 1


@FULL
def test_second_driver_is_refused(place: Path) -> None:
    words = (*WORDS, "--batch", "1", "--before", "slow:wait")
    process = subprocess.Popen([sys.executable, "-m", "lite_core", "map", *words], cwd=place)
    while not (place / "out/_manifest.jsonl").exists():
        time.sleep(0.01)
    refused = lite_map(*words, folder=place, code=2)
    assert f"another run (process {process.pid} on " in refused.stderr
    process.kill()
    process.wait()
    assert lite_map_json(*words, folder=place)["complete"]  # the lock ended with its process
