"""Tests of parts: what they are made of, and that doing them is safe wherever it happens."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapping_samples import dense_model, lite_map, result, table_of

from lite_core.errors import InputError
from lite_serve.mapping.job import Job, opened_with_digest
from lite_serve.mapping.parts import Part
from lite_serve.mapping.sources import list_parts
from lite_serve.mapping.work import do_part, model_of, release

ROWS = 100


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job on a table of a hundred rows in row groups of ten."""
    model = dense_model(tmp_path)
    pq.write_table(table_of(ROWS), tmp_path / "a.parquet", row_group_size=10)
    (tmp_path / "out").mkdir()
    paths = (str(tmp_path / name) for name in ("a.parquet", "out"))
    return Job(str(model), *paths, opened_with_digest(str(model), {})[1])


@pytest.mark.parametrize(
    ("most", "sizes"), [(None, [100]), (35, [30, 30, 30, 10]), (10, [10] * 10), (4, [3, 3, 4] * 10), (1, [1] * 100)]
)
def test_parts_are_row_groups_together_or_divided(job: Job, most: int | None, sizes: list[int]) -> None:
    parts = list_parts(replace(job, part_rows=most))
    assert [part.rows for part in parts] == sizes
    assert [part.index for part in parts] == [*range(len(sizes))]
    assert [part.first_row for part in parts] == [sum(sizes[:index]) for index in range(len(sizes))]
    assert [Part.of(pickle.loads(pickle.dumps(part)).identity()) for part in parts] == parts


def test_large_rows_make_small_parts(tmp_path: Path, job: Job) -> None:
    assert job.most_rows(1000) == 65536
    assert job.most_rows(600_000) == 447  # of 256 MiB


@pytest.mark.parametrize("most", [35, 7])
def test_parts_of_any_size_have_every_row_once(job: Job, most: int) -> None:
    divided = replace(job, part_rows=most, batch=4)
    finished = [do_part(divided, part) for part in reversed(list_parts(divided))]
    assert sum(part.rows for part in finished) == ROWS
    assert np.array_equal(result(Path(job.output))["id"].to_numpy(), np.arange(ROWS))


def test_one_plan_serves_all_batches(job: Job) -> None:
    divided = replace(job, part_rows=7, batch=4)
    for part in list_parts(divided):
        do_part(divided, part)
    assert model_of(divided).session.plan_statistics.misses == 1
    release(divided)


def test_several_workers_may_do_one_part(job: Job) -> None:
    (part,) = list_parts(job)
    alone = do_part(job, part)
    content = (Path(job.output) / alone.output).read_bytes()
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: do_part(job, part), range(40))]
    assert {(each.output, each.bytes, each.rows) for each in found} == {(alone.output, alone.bytes, ROWS)}
    assert [path.name for path in Path(job.output).iterdir()] == [alone.output]
    assert (Path(job.output) / alone.output).read_bytes() == content


def test_job_travels_and_is_checked_where_it_arrives(job: Job) -> None:
    assert pickle.loads(pickle.dumps(job)).key == job.key
    assert replace(job, threads=7).key == job.key
    assert replace(job, batch=7).key != job.key
    with pytest.raises(InputError, match="differs from the one that the run was started with"):
        model_of(replace(job, model_digest="0" * 64))


def test_parts_with_other_columns_are_refused(tmp_path: Path) -> None:
    dense_model(tmp_path)
    (tmp_path / "in").mkdir()
    table = table_of(ROWS)
    pq.write_table(table, tmp_path / "in/a.parquet")
    pq.write_table(table.set_column(0, "id", table["id"].cast(pa.string())), tmp_path / "in/b.parquet")
    words = ("dense.lite", "in", "-o", "out", "--workers", "1")
    refused = lite_map(*words, folder=tmp_path, code=1)
    expected = "the results of b.parquet, rows 0 to 99 have the columns id string, name string, y "
    assert expected in refused.stderr
    pq.write_table(table.drop_columns("x"), tmp_path / "in/b.parquet")
    refused = lite_map(*words, folder=tmp_path, code=2)
    assert "b.parquet: the input 'x' has no column: the columns are id, name" in refused.stderr
