"""Tests of the options and messages of `lite map`."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapping_samples import ROW, dense_model, lite_map, lite_map_json, numbers, result, table_of, written_model

import lite_core as lite
from workspace import ROOT

ROWS = 100


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model and a table of ten parts."""
    dense_model(tmp_path)
    pq.write_table(table_of(ROWS), tmp_path / "a.parquet", row_group_size=10)
    return tmp_path


WORDS = ("dense.lite", "a.parquet", "-o", "out", "--part-rows", "10")


# **** what goes in and out ****


def test_columns_are_renamed_and_chosen(place: Path) -> None:
    table = table_of(ROWS).rename_columns(["y", "label", "features"])
    pq.write_table(table, place / "b.parquet")
    words = ("dense.lite", "b.parquet", "-o", "o", "--column", "x=features")
    clash = lite_map(*words, folder=place, code=1)
    assert "the column 'y' is in the input and among the results" in clash.stdout
    lite_map(*words, "--result", "s=score", "--keep", "label", folder=place)
    assert result(place / "o").schema.names == ["label", "score"]
    lite_map(*words, "--result", "s=score", "--keep", "all", "--again", folder=place)
    assert result(place / "o").schema.names == ["y", "label", "features", "score"]
    lite_map(*words, "--keep", "none", "--again", folder=place)
    assert result(place / "o").schema.names == ["y", "s"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--column", "z=x"), "there is no input 'z'; the inputs are x"),
        (("--column", "x=z"), "--column x=z: there is no column 'z'; the columns are id, name, x"),
        (("--column", "x"), "write INPUT=COLUMN, not 'x'"),
        (("--column", "x=name"), "column 'name' is text, the input 'x' is float32"),
        (("--keep", "z"), "--keep: there is no column 'z'"),
        (("--result", "z"), "there is no output 'z'; the outputs are y, s"),
        (("--before", "nothing:f"), "the module 'nothing' cannot be imported: ModuleNotFoundError"),
        (("--before", "json:nothing"), "the module 'json' has no function 'nothing'; it has"),
        (("--before", "json"), "--before must be module:function"),
        (("--format", "npz"), "a.parquet' cannot be read as npz"),
    ],
)
def test_mistakes_are_named_before_a_row_is_read(place: Path, words: tuple[str, ...], message: str) -> None:
    refused = lite_map(*WORDS, *words, folder=place, code=2)
    assert message in refused.stderr
    assert not list((place / "out").glob("part*"))


def test_numbers_are_rounded_only_if_the_user_says_so(place: Path) -> None:
    rows = [[0.1] * ROW]
    pq.write_table(pa.table({"x": pa.array(rows, pa.list_(pa.float64(), ROW))}), place / "b.parquet")
    refused = lite_map("dense.lite", "b.parquet", "-o", "o", folder=place, code=2)
    assert "column 'x' is float64, the input 'x' is float32: numbers would be rounded" in refused.stderr
    assert "next: lite map dense.lite b.parquet -o o --cast" in refused.stderr
    lite_map("dense.lite", "b.parquet", "-o", "o", "--cast", folder=place)


def test_integers_are_converted_if_they_stay_what_they_are(place: Path) -> None:
    written_model(place / "m.lite", lambda b: b.output(b.add("Neg", [b.input("x", "float32", ["n"])]), "y"))
    pq.write_table(pa.table({"x": [1, 2**24]}), place / "b.parquet")
    lite_map("m.lite", "b.parquet", "-o", "o", folder=place)
    assert result(place / "o")["y"].to_pylist() == [-1.0, -(2.0**24)]
    pq.write_table(pa.table({"x": [1, 2**24 + 1]}), place / "b.parquet")
    refused = lite_map("m.lite", "b.parquet", "-o", "o", folder=place, code=1)
    assert "cannot hold the 16777217 in row 1 of b.parquet" in refused.stdout
    assert "next: lite map m.lite b.parquet -o o --cast" in refused.stdout


def test_null_is_named_or_filled(place: Path) -> None:
    written_model(place / "m.lite", lambda b: b.output(b.add("Neg", [b.input("x", "float32", ["n"])]), "y"))
    pq.write_table(pa.table({"x": pa.array([1.0, None], pa.float32())}), place / "b.parquet")
    refused = lite_map("m.lite", "b.parquet", "-o", "o", folder=place, code=1)
    assert "column 'x' has a null in row 1 of b.parquet" in refused.stdout
    lite_map("m.lite", "b.parquet", "-o", "o", "--fill", "x=7", folder=place)
    assert result(place / "o")["y"].to_pylist() == [-1.0, -7.0]


def test_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    pq.write_table(table_of(10), tmp_path / "a.parquet")
    dense_model(tmp_path, rows=4)
    done = lite_map_json("dense.lite", "a.parquet", "-o", "out", folder=tmp_path)
    assert (done["batch"], done["rows"]) == (4, 10)
    refused = lite_map("dense.lite", "a.parquet", "-o", "o", "--batch", "8", folder=tmp_path, code=2)
    assert "the batch of the model is fixed" in refused.stderr


def test_output_without_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(table_of(10), tmp_path / "a.parquet")
    axes = np.array([0])
    written_model(
        tmp_path / "m.lite",
        lambda b: b.output(b.add("ReduceSum", [b.input("x", "float32", ["n", ROW]), b.constant(axes)]), "sum"),
    )
    refused = lite_map("m.lite", "a.parquet", "-o", "out", "--batch", "1", folder=tmp_path, code=1)
    assert "the output 'sum' has the shape [1, 8] for a batch of 2 rows" in refused.stdout


# **** functions ****

FUNCTIONS = """
import pyarrow as pa

def doubled(rows):
    return {"x": [[2 * value for value in row] for row in rows.column("x").to_pylist()]}

def named(outputs, rows):
    return {"best": outputs["y"].argmax(axis=1), "upper": [name.upper() for name in rows.column("name").to_pylist()]}

def failing(rows):
    if "row 57" in rows.column("name").to_pylist():
        raise ValueError("not this one")
    return rows

def shorter(outputs, rows):
    return {"y": outputs["y"][1:]}
"""


def test_functions_before_and_after(place: Path) -> None:
    (place / "map_functions.py").write_text(FUNCTIONS)
    words = (*WORDS, "--cast", "--before", "map_functions:doubled", "--after", "map_functions:named")
    lite_map(*words, folder=place)
    lite_map(*WORDS[:3], "plain", folder=place)
    found, plain = result(place / "out"), result(place / "plain")
    assert found.schema.names == ["id", "name", "best", "upper"]
    assert found["upper"].to_pylist() == [f"ROW {i}" for i in range(ROWS)]
    assert found["best"].to_pylist() == [int(np.argmax(row)) for row in plain["y"].to_pylist()]
    (place / "map_functions.py").write_text(FUNCTIONS + "# changed\n")
    refused = lite_map(*words, folder=place, code=2)
    assert "other code in the module of --before map_functions:doubled" in refused.stderr
    assert refused.stderr.endswith("--again\n")


def test_failure_of_a_function_names_the_rows(place: Path) -> None:
    (place / "map_failing.py").write_text(FUNCTIONS)
    words = (*WORDS, "--before", "map_failing:failing", "--workers", "1")
    failed = lite_map_json(*words, folder=place, code=1)
    assert failed["finished_parts"] == 5
    (failure,) = failed["failures"]
    assert failure["message"].startswith("a.parquet, rows 50 to 59: --before map_failing:failing raised ValueError: ")
    assert failure["message"].endswith("not this one, in line 12 of map_failing.py")
    assert failed["next"] == "lite map " + " ".join([*words, "--json"])
    others = lite_map_json(*words, "--keep-going", folder=place, code=1)
    assert (others["finished_before"], others["finished_parts"]) == (5, 9)
    short = lite_map_json(*WORDS, "--after", "map_failing:shorter", "--again", folder=place, code=1)
    assert "--after returned 9 rows as 'y', expected 10 rows" in short["failures"][0]["message"]


# **** one folder, one run ****


def test_finished_run_does_nothing(place: Path) -> None:
    lite_map(*WORDS, folder=place)
    before = {path: path.stat().st_mtime_ns for path in (place / "out").glob("part*")}
    again = lite_map_json(*WORDS, folder=place)
    assert (again["complete"], again["finished_before"], again["rows_before"]) == (True, 10, ROWS)
    assert {path: path.stat().st_mtime_ns for path in (place / "out").glob("part*")} == before


def test_changed_input_is_noticed(place: Path) -> None:
    (place / "in").mkdir()
    for name, start in (("a", 0), ("b", 50)):
        pq.write_table(table_of(ROWS)[start : start + 50], place / f"in/{name}.parquet")
    words = ("dense.lite", "in", "-o", "out")
    lite_map(*words, folder=place)
    changed = table_of(ROWS)[50:].set_column(0, "id", pa.array(np.arange(1050, 1100)))
    pq.write_table(changed, place / "in/b.parquet")
    done = lite_map_json(*words, folder=place)
    assert done["notes"] == ["b.parquet: changed since; their parts are done again"]
    assert (done["finished_before"], done["rows"]) == (1, ROWS)
    assert result(place / "out")["id"].to_pylist() == [*range(50), *range(1050, 1100)]
    (place / "in/b.parquet").unlink()
    assert lite_map_json(*words, folder=place)["rows"] == 50
    assert result(place / "out").num_rows == 50


def test_lost_output_is_done_again(place: Path) -> None:
    lite_map(*WORDS, folder=place)
    whole = result(place / "out")
    (place / "out/part-00003.parquet").unlink()
    done = lite_map_json(*WORDS, folder=place)
    assert done["notes"] == ["part-00003.parquet: missing or changed in the output folder; their parts are done again"]
    assert result(place / "out").equals(whole)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--batch", "8"), "--batch none instead of 8"),
        (("--keep", "none"), "--keep "),
        (("--precision", "float16"), "--precision none instead of float16"),
    ],
)
def test_other_options_are_refused(place: Path, more: tuple[str, ...], message: str) -> None:
    lite_map(*WORDS, folder=place)
    refused = lite_map(*WORDS, *more, folder=place, code=2)
    assert message in refused.stderr
    assert refused.stderr.endswith(f"next: lite map {' '.join([*WORDS, *more])} --again\n")


def test_other_model_is_refused(place: Path) -> None:
    lite_map(*WORDS, folder=place)
    dense_model(place, rows=4)
    refused = lite_map(*WORDS, folder=place, code=2)
    assert "another model (or its file was changed)" in refused.stderr
    assert lite_map_json(*WORDS, "--again", folder=place)["batch"] == 4


def test_foreign_folders_are_left_alone(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine/part-00000.parquet").write_text("precious")
    refused = lite_map(*WORDS[:3], "mine", folder=place, code=2)
    assert "contains 'part-00000.parquet', which lite map has not written" in refused.stderr
    assert (place / "mine/part-00000.parquet").read_text() == "precious"
    inside = lite_map("dense.lite", ".", "-o", "out", folder=place, code=2)
    assert "is inside the input" in inside.stderr


def test_torn_manifest_is_mended(place: Path) -> None:
    lite_map(*WORDS, folder=place)
    manifest = place / "out/_manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join(lines[:4]) + b"\0" * 20 + b"\n" + b"".join(lines[5:8]) + lines[8][:30])
    done = lite_map_json(*WORDS, folder=place)
    assert (done["finished_before"], done["rows"]) == (6, ROWS)
    assert done["notes"] == ["1 damaged line of _manifest.jsonl was left out; its part is done again"]
    assert json.loads(manifest.read_bytes().splitlines()[-1])["kind"] == "finished"
    manifest.write_bytes(b"no manifest\n")
    assert "is not a manifest of lite map" in lite_map(*WORDS, folder=place, code=2).stderr


# **** nothing, and what is missing ****


def test_table_without_rows(place: Path) -> None:
    pq.write_table(table_of(0), place / "empty.parquet")
    assert "has no rows" in lite_map("dense.lite", "empty.parquet", "-o", "o", folder=place, code=4).stderr


def test_missing_and_broken_files(place: Path) -> None:
    near = lite_map("dense.lite", "a.parqet", "-o", "o", folder=place, code=2).stderr
    assert "there is no file or folder 'a.parqet'; did you mean a.parquet?" in near
    assert near.endswith("next: lite map dense.lite a.parquet -o o\n")
    (place / "b.parquet").write_bytes(b"PAR1 but broken")
    broken = lite_map("dense.lite", "b.parquet", "-o", "o", folder=place, code=2).stderr
    assert "b.parquet' cannot be read as parquet" in broken
    (place / "x.txt").write_text("")
    assert (
        "has none of the suffixes .parquet" in lite_map("dense.lite", "x.txt", "-o", "o", folder=place, code=2).stderr
    )


def test_pyarrow_is_an_extra(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    missing = lite_map(*WORDS, folder=place, code=3)
    assert missing.stderr.endswith("next: pip install 'lite-serve[map]'\n")


# **** disks ****


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_full_disk_keeps_what_is_finished(place: Path) -> None:
    pq.write_table(table_of(40000), place / "a.parquet", row_group_size=20000)
    words = ("dense.lite", "a.parquet", "-o", "out", "--part-rows", "20000", "--workers", "1")
    lite_map(*words[:3], "whole", *words[4:], folder=place)
    limit = max(path.stat().st_size for path in (place / "whole").glob("part*")) - 1000
    command = [sys.executable, "-m", "lite_core", "map", *words]
    small = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert small.returncode == 1, small.stderr
    assert "cannot be written: File too large" in small.stderr
    assert not list((place / "out").glob(".writing*"))
    lite_map(*words, folder=place)
    assert result(place / "out").equals(result(place / "whole"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(place: Path) -> None:
    (place / "out").mkdir(mode=0o500)
    assert "cannot be written: Permission denied" in lite_map(*WORDS, folder=place, code=1).stderr


def test_results_are_those_of_the_numbers(place: Path) -> None:
    lite_map(*WORDS, folder=place)
    found = np.array(result(place / "out")["s"].to_pylist())
    weights = np.random.default_rng(0).standard_normal((ROW, 4)).astype(np.float32)
    np.testing.assert_allclose(found, (numbers(ROWS).astype(np.float64) @ weights).sum(axis=1), rtol=1e-4, atol=1e-5)


def test_functions_of_the_page(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/mapping.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "prepare.py").write_text(code)

    def build(b: lite.GraphBuilder) -> None:
        numbers = b.add("Cast", [b.input("ids", "int64", ["n", 64])], {"to": lite.DType.FLOAT32})
        weights = np.stack([np.ones(64), np.full(64, 2.0)], axis=1).astype(np.float32)
        b.output(b.add("MatMul", [numbers, b.constant(weights)]), "scores")

    written_model(tmp_path / "m.lite", build)
    pq.write_table(pa.table({"text": ["a", "bc"]}), tmp_path / "texts.parquet")
    words = ("m.lite", "texts.parquet", "-o", "labels", "--before", "prepare:tokens", "--after", "prepare:names")
    lite_map(*words, folder=tmp_path)
    rows = result(tmp_path / "labels").to_pylist()
    assert rows == [
        {"text": "a", "label": "yes", "score": 2.0 * 97},
        {"text": "bc", "label": "yes", "score": 2.0 * (98 + 99)},
    ]
