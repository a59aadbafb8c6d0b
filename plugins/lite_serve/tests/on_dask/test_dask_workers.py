"""Tests of workers that do not fit a job: they end the run, and are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs lite-serve[dask]")

import pyarrow as pa
import pyarrow.parquet as parquet
from dask_processes import dask_cluster

import lite_core as lite
from lite_core.errors import LiteError
from lite_serve.mapping.driver import driven
from lite_serve.mapping.functions import Function
from lite_serve.mapping.job import Job, opened_with_digest
from lite_serve.mapping.on_dask import finished_on_dask
from lite_tools.writing import write_model

pytestmark = pytest.mark.full("serving")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    graph = lite.GraphBuilder("double")
    x = graph.input("x", "float32", ["n"])
    graph.output(graph.add("Add", [x, x]), "y")
    model, table = tmp_path / "double.lite", tmp_path / "table.parquet"
    write_model(model, graph.build())
    parquet.write_table(pa.table({"x": np.arange(100, dtype=np.float32)}), table)
    return Job(str(model), str(table), str(tmp_path / "results"), opened_with_digest(str(model), {})[1])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with dask_cluster() as found:
        yield found


def told(job: Job, sent: Job, address: str) -> str:
    """Return the error of a run whose workers are sent another job than the driver has."""
    with driven(job) as run, pytest.raises(LiteError) as raised:
        list(run.record(finished_on_dask(sent, run.todo, address, None, print)))
    return str(raised.value)


def test_worker_with_another_model_is_named(job: Job, address: str) -> None:
    message = told(job, replace(job, model_digest="0" * 64), address)
    assert message.startswith("the worker tcp://127.0.0.1:")
    assert "differs from the one that the run was started with" in message
    assert job.model in message


@pytest.mark.parametrize("field", ["model", "input", "output"])
def test_worker_that_does_not_see_a_file_is_named(job: Job, address: str, field: str) -> None:
    message = told(job, replace(job, **{field: "/on/another/machine"}), address)
    assert message.startswith("the worker tcp://127.0.0.1:")
    assert f"does not see the {field}" in message
    assert "/on/another/machine" in message


def test_worker_with_other_code_is_named(job: Job, address: str, tmp_path: Path) -> None:
    (tmp_path / "prepared_rows.py").write_text("def doubled(batch):\n    return batch\n")
    other = Function("prepared_rows:doubled", "0" * 64)
    message = told(job, replace(job, before=other, folder=str(tmp_path)), address)
    assert "the module's file here differs" in message
    missing = Function("no_such_module:doubled", "0" * 64)
    message = told(job, replace(job, before=missing, folder=str(tmp_path)), address)
    assert "no_such_module" in message


def test_worker_that_fits_does_the_job(job: Job, address: str) -> None:
    with driven(job) as run:
        results = list(run.record(finished_on_dask(job, run.todo, address, None, print)))
        assert run.finish().is_complete
    assert len(results) == len(run.parts) == 1
