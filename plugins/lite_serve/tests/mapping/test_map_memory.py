"""The memory of a run does not grow with the dataset."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from mapping_samples import written_model

SCRIPT = Path(__file__).with_name("measured_run.py")
#: Numbers in a row, and rows of a small and a large dataset of 8 and 320 MB.
ROW, SMALL, LARGE = 2048, 1000, 40000
#: MiB by which the peak may grow: a fifth of the growth of the dataset.
GROWTH = 64

pytestmark = [
    pytest.mark.full("serving"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc/self/status"),
]


def batches(rows: int) -> Iterator[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    return (generator.standard_normal((1000, ROW), np.float32) for _ in range(rows // 1000))


def as_lists(array: np.ndarray[Any, Any]) -> pa.RecordBatch:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), ROW)
    return pa.record_batch({"x": lists})


def one_row_group(file: Path, rows: int) -> None:
    table = pa.Table.from_batches([as_lists(batch) for batch in batches(rows)])
    pq.write_table(table, file, row_group_size=rows, use_dictionary=False)
    assert pq.ParquetFile(file).num_row_groups == 1


def compressed_arrow(file: Path, rows: int) -> None:
    table = pa.Table.from_batches([as_lists(batch) for batch in batches(rows)])
    pa.feather.write_feather(table, file, compression="lz4", chunksize=1000)


def array(file: Path, rows: int) -> None:
    np.save(file, np.concatenate([*batches(rows)]))


def archive(file: Path, rows: int) -> None:
    np.savez_compressed(file, x=np.concatenate([*batches(rows)]))


def text(file: Path, rows: int) -> None:
    with file.open("w") as lines:
        for batch in batches(rows // 4):  # text is longer
            lines.writelines(f'{{"x": {row.tolist()}}}\n' for row in batch)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.parquet", one_row_group),
        ("a.feather", compressed_arrow),
        ("a.npy", array),
        ("a.npz", archive),
        ("a.jsonl", text),
    ],
)
def test_memory_does_not_grow_with_the_dataset(tmp_path: Path, name: str, write: Callable[[Path, int], None]) -> None:
    written_model(
        tmp_path / "m.lite", lambda b: b.output(b.add("Relu", [b.input("x", "float32", ["n", ROW])]), "y")
    )  # the output is as large as the input
    peaks = []
    for rows in (4 * SMALL, LARGE):
        write(tmp_path / name, rows)
        words = ("map.py", "m.lite", name, "-o", f"out{rows}", "--part-rows", str(LARGE), "--workers", "1")
        done = subprocess.run([sys.executable, SCRIPT, *words[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout.splitlines()[-1]))
        assert len([*(tmp_path / f"out{rows}").glob("part*")]) == 1 or name == "a.jsonl"
    assert peaks[1] - peaks[0] < GROWTH, peaks
