"""Tests of `lite map --dask`: clusters of real processes, of which the busiest is killed in the middle of its work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs lite-serve[dask]")

import pyarrow as pa
import pyarrow.parquet as parquet
from dask_processes import dask_cluster, importable
from recorded_parts import begun, kill_busiest

import lite_core as lite
from lite_tools.writing import write_model

pytestmark = pytest.mark.full("serving")

ROWS, ROWS_PER_PART = 20_000, 100
PARTS = ROWS // ROWS_PER_PART


@dataclass(frozen=True)
class Dataset:
    """A model that doubles x, a table of 20,000 rows in 200 parts, and folders for results and records."""

    folder: Path

    @property
    def seen(self) -> Path:
        return self.folder / "seen"

    @property
    def output(self) -> Path:
        return self.folder / "results"

    def begin(self, *options: str, seconds: float = 0.0) -> subprocess.Popen[str]:
        """Begin the command in a process group of its own, as a shell does."""
        files = [str(self.folder / "double.lite"), str(self.folder / "table.parquet"), "-o", str(self.output)]
        sizes = ["--part-rows", str(ROWS_PER_PART), "--batch", str(ROWS_PER_PART)]
        command = [
            sys.executable,
            "-m",
            "lite_core",
            "map",
            *files,
            *sizes,
            "--before",
            "seen_batches:record",
            "--json",
        ]
        variables = {**importable(), **self.variables(seconds)}
        return subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a background job ignores
        )

    def variables(self, seconds: float) -> dict[str, str]:
        """Return the variables that the recording function reads."""
        return {"LITE_TEST_SEEN": str(self.seen), "LITE_TEST_SECONDS": str(seconds)}

    def finished(self) -> set[int]:
        """Return the first rows of the parts in the manifest."""
        manifest = self.output / "_manifest.jsonl"
        lines = manifest.read_text().splitlines() if manifest.exists() else []
        parts = [json.loads(line) for line in lines if line.endswith("}")]
        return {line["part"]["groups"][0] * ROWS_PER_PART for line in parts if line["kind"] == "part"}

    def check_rows(self) -> None:
        """Check that every row is there once, in order, with its result."""
        files = sorted(self.output.glob("part-*.parquet"))
        found = pa.concat_tables([parquet.read_table(file) for file in files])
        np.testing.assert_array_equal(found["row"].to_numpy(), np.arange(ROWS))
        np.testing.assert_array_equal(found["y"].to_numpy(), 2 * np.arange(ROWS, dtype=np.float32))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    graph = lite.GraphBuilder("double")
    x = graph.input("x", "float32", ["n"])
    graph.output(graph.add("Add", [x, x]), "y")
    write_model(tmp_path / "double.lite", graph.build())
    rows = np.arange(ROWS)
    table = pa.table({"row": rows, "x": rows.astype(np.float32)})
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=ROWS_PER_PART)
    made = Dataset(tmp_path)
    made.seen.mkdir()
    return made


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until a condition holds; the process must not end before."""
    deadline = time.monotonic() + 120
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end of a process; return its exit code and what it printed."""
    output, errors = process.communicate(timeout=180)
    return process.returncode, output, errors


def test_killed_worker_loses_no_row(dataset: Dataset) -> None:
    process = dataset.begin("--dask", "--workers", "2", seconds=0.02)
    wait_until(lambda: len(dataset.finished()) >= 60, process)
    interrupted = kill_busiest(dataset.seen)
    code, output, errors = ended(process)
    assert code == 0, errors
    assert begun(dataset.seen)[interrupted] > 1, "the part was done again"
    assert set(begun(dataset.seen)) == set(range(0, ROWS, ROWS_PER_PART))
    assert len(list(dataset.seen.iterdir())) == 3, "the worker was replaced by another"
    assert len(dataset.finished()) == PARTS
    assert json.loads(output)["rows"] == ROWS
    dataset.check_rows()


def test_killed_driver_does_no_finished_part_again(dataset: Dataset) -> None:
    process = dataset.begin("--dask", "--workers", "2", seconds=0.02)
    wait_until(lambda: len(dataset.finished()) >= 60, process)
    process.kill()
    process.communicate(timeout=60)  # the workers write to the same pipes: they have ended, too
    finished, before = dataset.finished(), begun(dataset.seen)
    assert 60 <= len(finished) < PARTS
    code, _, errors = ended(dataset.begin("--dask", "--workers", "2"))
    assert code == 0, errors
    after = begun(dataset.seen)
    assert all(after[first] == before[first] for first in finished)
    assert len(dataset.finished()) == PARTS
    dataset.check_rows()


def test_running_cluster_does_a_job(dataset: Dataset) -> None:
    variables = {**importable(), **dataset.variables(0)}
    with dask_cluster(workers=2, **variables) as address:
        code, output, errors = ended(dataset.begin("--dask", address))
        assert code == 0, errors
        printed = json.loads(output)
        assert (printed["rows"], printed["workers"]) == (ROWS, 2)
        assert len(list(dataset.seen.iterdir())) == 2, "both workers took part"
        dataset.check_rows()
        # The workers kept nothing: a changed model is read again.
        graph = lite.GraphBuilder("other")
        x = graph.input("x", "float32", ["n"])
        graph.output(graph.add("Neg", [x]), "y")
        write_model(dataset.folder / "double.lite", graph.build())
        code, _, errors = ended(dataset.begin("--dask", address, "--again"))
        assert code == 0, errors
    found = parquet.read_table(sorted(dataset.output.glob("part-*.parquet"))[0])
    np.testing.assert_array_equal(found["y"].to_numpy(), -np.arange(ROWS_PER_PART, dtype=np.float32))


def test_interrupted_run_ends_its_workers(dataset: Dataset) -> None:
    process = dataset.begin("--dask", "--workers", "2", seconds=0.02)
    wait_until(lambda: len(dataset.finished()) >= 20, process)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    code, output, errors = ended(process)
    assert code == 1
    assert f"of {PARTS} parts are finished" in json.loads(output)["error"]
    assert "--dask --workers 2" in json.loads(output)["next"]
    assert "Traceback" not in errors
    count = sum(begun(dataset.seen).values())
    time.sleep(0.2)
    assert sum(begun(dataset.seen).values()) == count
    code, _, errors = ended(dataset.begin("--dask", "--workers", "2"))
    assert code == 0, errors
    dataset.check_rows()


def test_wrong_row_is_named_and_others_are_done(dataset: Dataset) -> None:
    x = np.arange(ROWS).astype(object)
    x[12_345] = None
    table = pa.table({"row": np.arange(ROWS), "x": pa.array(x, pa.float32())})
    parquet.write_table(table, dataset.folder / "table.parquet", row_group_size=ROWS_PER_PART)
    code, output, errors = ended(dataset.begin("--dask", "--workers", "2", "--keep-going"))
    assert code == 1, errors
    (failure,) = json.loads(output)["failures"]
    assert "row 12345" in failure["message"]
    assert begun(dataset.seen)[12_300] == 1, "it is not tried again"
    assert len(dataset.finished()) == PARTS - 1
