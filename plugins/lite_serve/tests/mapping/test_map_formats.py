"""Tests of the formats of datasets: the same rows give the same results, whatever they are read from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from mapping_samples import (
    ROW,
    dense_model,
    expected,
    lite_map,
    lite_map_json,
    numbers,
    result,
    table_of,
    written_model,
)
from PIL import Image

import lite_core as lite
from lite_tools.commands import ImageOptions, collect_inputs

ROWS = 100


def parquet(file: Path) -> None:
    pq.write_table(table_of(ROWS), file, row_group_size=30)


def arrow(file: Path) -> None:
    pa.feather.write_feather(table_of(ROWS), file, chunksize=30, compression="lz4")


def json_lines(file: Path) -> None:
    rows = enumerate(numbers(ROWS))
    file.write_text("".join(f"{json.dumps({'id': i, 'name': f'row {i}', 'x': row.tolist()})}\n" for i, row in rows))


def npy(file: Path) -> None:
    np.save(file, numbers(ROWS))


def npz(file: Path) -> None:
    np.savez_compressed(file, x=numbers(ROWS), id=np.arange(ROWS))


@pytest.mark.parametrize(
    ("name", "write", "part", "kept"),
    [
        ("a.parquet", parquet, 30, ["id", "name"]),
        ("a.feather", arrow, 30, ["id", "name"]),
        ("a.jsonl", json_lines, ROWS, ["id", "name"]),
        ("a.npy", npy, 25, []),
        ("a.npz", npz, ROWS, ["id"]),
    ],
)
def test_formats(tmp_path: Path, name: str, write: Callable[[Path], None], part: int, kept: list[str]) -> None:
    write(tmp_path / name)
    model = dense_model(tmp_path)
    lite_map(model, name, "-o", "out", "--part-rows", part if name != "a.npy" else 30, "--batch", "16", folder=tmp_path)
    found, wanted = result(tmp_path / "out"), expected(model, numbers(ROWS), 16, part)
    assert found.schema.names == [*kept, "y", "s"]
    assert found["s"].to_numpy().tobytes() == wanted["s"].tobytes()
    assert found["y"].combine_chunks().flatten().to_numpy().tobytes() == wanted["y"].tobytes()
    if kept:
        assert np.array_equal(found["id"].to_numpy(), np.arange(ROWS))


def test_json_lines_are_divided_at_their_ends(tmp_path: Path) -> None:
    json_lines(tmp_path / "a.jsonl")
    done = lite_map_json(dense_model(tmp_path), "a.jsonl", "-o", "out", "--part-rows", 7, folder=tmp_path)
    assert done["parts"] > 10
    assert np.array_equal(result(tmp_path / "out")["id"].to_numpy(), np.arange(ROWS))


def test_csv_feeds_inputs_of_single_numbers(tmp_path: Path) -> None:
    written_model(
        tmp_path / "m.lite",
        lambda b: b.output(
            b.add("Mul", [b.input("a", "float32", ["n", 1]), b.input("b", "float32", ["n", 1])]), "product"
        ),
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.csv").write_text("a,b,label\n1,0.5,x\n2,0.1,y\n")
    (tmp_path / "in/2.csv").write_text("a,b,label\n3,2,z\n")
    lite_map("m.lite", "in", "-o", "out", folder=tmp_path)
    found = result(tmp_path / "out")
    assert found["label"].to_pylist() == ["x", "y", "z"]
    assert found["product"].to_pylist() == [0.5, float(np.float32(2) * np.float32(0.1)), 6.0]


def test_pictures_are_prepared_as_lite_run_prepares_them(tmp_path: Path) -> None:
    shape = [1, 3, 8, 8]
    model = written_model(
        tmp_path / "m.lite",
        lambda b: b.output(b.add("Flatten", [b.add("Relu", [b.input("x", "float32", ["n", *shape[1:]])])]), "y"),
    )
    (tmp_path / "in/deeper").mkdir(parents=True)
    names = ["a.png", "b.jpg", "deeper/c=1.png"]
    for seed, name in enumerate(names):
        pixels = np.random.default_rng(seed).integers(0, 256, (12, 10, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "in" / name)
    options = ("--mean", "0.5", "--std", "0.2,0.3,0.4", "--bgr")
    lite_map(model, "in", "-o", "out", "--part-rows", 2, *options, folder=tmp_path)
    found = result(tmp_path / "out")
    assert found["path"].to_pylist() == names
    session, image = lite.load(model), ImageOptions.parse("0.5", "0.2,0.3,0.4", True)
    for name, row in zip(names, found["y"].to_pylist()):
        array = collect_inputs(session.inputs, [f"x={tmp_path / 'in' / name}"], {"x": tuple(shape)}, image, 0)[0]["x"]
        assert np.array_equal(np.array(row, np.float32), session.run({"x": array})["y"][0])


def test_broken_picture_is_named(tmp_path: Path) -> None:
    written_model(
        tmp_path / "m.lite", lambda b: b.output(b.add("Relu", [b.input("x", "float32", ["n", 3, 8, 8])]), "y")
    )
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "in/a.png")
    (tmp_path / "in/b.png").write_bytes(b"no picture")
    done = lite_map("m.lite", "in", "-o", "out", folder=tmp_path, code=1)
    assert "b.png cannot be read as an image" in done.stdout


def test_outputs_of_several_dimensions_are_tensors(tmp_path: Path) -> None:
    written_model(
        tmp_path / "m.lite", lambda b: b.output(b.add("Relu", [b.input("x", "float32", ["n", 2, ROW // 2])]), "y")
    )
    pq.write_table(table_of(10), tmp_path / "a.parquet")
    lite_map("m.lite", "a.parquet", "-o", "out", folder=tmp_path)
    column = result(tmp_path / "out")["y"].combine_chunks()
    assert np.array_equal(column.to_numpy_ndarray(), np.maximum(numbers(10).reshape(10, 2, -1), 0))


def test_rows_of_different_lengths_run_one_by_one(tmp_path: Path) -> None:
    written_model(
        tmp_path / "m.lite", lambda b: b.output(b.add("Relu", [b.input("x", "float32", ["n", "length"])]), "y")
    )
    rows = [[1.0], [-1.0, 2.0, 3.0], [4.0, 5.0]]
    pq.write_table(pa.table({"x": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / "a.parquet")
    refused = lite_map("m.lite", "a.parquet", "-o", "out", folder=tmp_path, code=1)
    assert "has 3 elements in row 1 of a.parquet, and 1 in row 0 of a.parquet" in refused.stdout
    lite_map("m.lite", "a.parquet", "-o", "out", "--batch", 1, folder=tmp_path)
    assert result(tmp_path / "out")["y"].to_pylist() == [[1.0], [0.0, 2.0, 3.0], [4.0, 5.0]]


def test_texts_and_truth_values(tmp_path: Path) -> None:
    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Identity", [b.input("text", "string", ["n"])]), "same")
        b.output(b.add("Not", [b.input("flag", "bool", ["n", 1])]), "other")

    written_model(tmp_path / "m.lite", build)
    pq.write_table(pa.table({"text": ["a", "ß", ""], "flag": [True, False, True]}), tmp_path / "a.parquet")
    lite_map("m.lite", "a.parquet", "-o", "out", folder=tmp_path)
    assert result(tmp_path / "out").to_pydict() == {"same": ["a", "ß", ""], "other": [False, True, False]}
