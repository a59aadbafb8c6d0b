"""Models, datasets and runs of `lite map` for its tests."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lite_core as lite
from lite_tools.cli import main
from lite_tools.writing import write_model

__all__ = [
    "ROW",
    "dense_model",
    "expected",
    "lite_map",
    "lite_map_json",
    "numbers",
    "result",
    "table_of",
    "written_model",
]

#: Numbers in a row of the datasets.
ROW = 8


def written_model(path: Path, build: Any) -> Path:
    """Write the model that a function adds to a builder."""
    graph = lite.GraphBuilder(path.stem)
    build(graph)
    write_model(path, graph.build())
    return path


def dense_model(folder: Path, rows: int | str = "n") -> Path:
    """Write a layer with the outputs ``y`` [rows, 4] and ``s`` [rows]."""

    def build(b: lite.GraphBuilder) -> None:
        weights = np.random.default_rng(0).standard_normal((ROW, 4)).astype(np.float32)
        product = b.add("MatMul", [b.input("x", "float32", [rows, ROW]), b.constant(weights)])
        b.output(b.add("Relu", [product]), "y")
        b.output(b.add("ReduceSum", [product, b.constant(np.array([1]))], {"keepdims": 0}), "s")

    return written_model(folder / "dense.lite", build)


def numbers(rows: int) -> np.ndarray[Any, Any]:
    """Return random rows."""
    return np.random.default_rng(1).standard_normal((rows, ROW)).astype(np.float32)


def table_of(rows: int) -> pa.Table:
    """Return a table with the columns ``id``, ``name`` and ``x``."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers(rows).ravel()), ROW)
    return pa.table({"id": np.arange(rows), "name": [f"row {i}" for i in range(rows)], "x": lists})


class Done(NamedTuple):
    """The end of a command: its texts on standard output and standard error."""

    stdout: str
    stderr: str


def lite_map(*words: object, folder: Path, code: int = 0) -> Done:
    """Run `lite map` in a folder, in this process, and check its exit code."""
    texts, errors, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(texts), redirect_stderr(errors), pytest.raises(SystemExit) as ended:
            main(["map", *map(str, words)])
    finally:
        os.chdir(before)
    assert ended.value.code == code, texts.getvalue() + errors.getvalue()
    return Done(texts.getvalue(), errors.getvalue())


def lite_map_json(*words: object, folder: Path, code: int = 0) -> dict[str, Any]:
    """Run `lite map --json`, and return its document."""
    found: dict[str, Any] = json.loads(lite_map(*words, "--json", folder=folder, code=code).stdout)
    return found


def result(folder: Path) -> pa.Table:
    """Return the rows of an output folder, as any program reads a dataset."""
    return pq.read_table(folder)


def expected(model: Path, rows: np.ndarray[Any, Any], batch: int, part: int) -> dict[str, np.ndarray[Any, Any]]:
    """Run a model as `lite run` does, on the batches of each part; the last one is filled up by its last row."""
    session = lite.load(model)
    found = []
    for first in range(0, len(rows), part):
        of_part = rows[first : first + part]
        for start in range(0, len(of_part), batch):
            piece = of_part[start : start + batch]
            whole = np.concatenate([piece, np.repeat(piece[-1:], batch - len(piece), axis=0)])
            outputs = session.run({next(iter(session.inputs)): whole})
            found.append({name: array[: len(piece)] for name, array in outputs.items()})
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}
