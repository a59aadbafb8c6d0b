"""``lite bench``: its options, its output and its files, on small models. Speed itself is not asserted."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_onnx import write
from lite_tools.cli.program import main
from lite_tools.conversion import convert

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"

#: The keys of a result with their types; units are in the names.
RESULT = {
    "name": str,
    "devices": list,
    "options": list,
    "load_ms": float,
    "compile_ms": float,
    "first_run_ms": float,
    "code_from": str,
    "kernels": dict,
    "runs": int,
    **{f"latency_{name}_ms": float for name in ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")},
    "throughput_per_second": float,
    "under_load": dict,
    "rss_before_mib": float,
    "peak_rss_mib": dict,
    "nodes": dict,
    "refusals": list,
    "notes": list,
}
DOCUMENT = {
    "schema_version": int,
    "model": str,
    "model_sha256": str,
    "inputs": dict,
    "input_types": dict,
    "other_load": dict,
    "environment": dict,
    "options": list,
    "notes": list,
    "results": list,
    "agreement": dict,
    "against": dict,
}


class Ended(NamedTuple):
    """The exit code of a command, and what it has written."""

    code: int
    out: str
    err: str


def bench(*arguments: str | Path) -> Ended:
    """Run the command in this process, with the handling of errors that users meet."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit) as end:
        main(["bench", *map(str, arguments)])
    assert isinstance(end.value.code, int)
    return Ended(end.value.code, out.getvalue(), err.getvalue())


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    builder = GraphBuilder("small")
    x = builder.input("x", "float32", ["batch", 8])
    weights = builder.constant(np.ones((8, 4), np.float32))
    builder.output(builder.add("Relu", [builder.add("MatMul", [x, weights])]), "y")
    write(builder.build(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


def check_types(data: dict[str, Any], wanted: dict[str, type], optional: tuple[str, ...] = ()) -> None:
    assert [*data] == [*wanted]
    for key, kind in wanted.items():
        assert isinstance(data[key], kind) or (key in optional and data[key] is None), key


def test_backends_and_threads_are_measured_in_turns(onnx_model: Path) -> None:
    options = ["-b", "x86", "-b", "host", "-t", "1", "-t", "2", "--shape", "2x8", "-n", "6", "--concurrent", "2"]
    run = bench(onnx_model, *options, "--json")
    data = json.loads(run.out)
    check_types(data, DOCUMENT, optional=("against", "other_load"))
    names = ["x86, 1 thread", "x86, 2 threads", "host, 1 thread", "host, 2 threads"]
    assert [r["name"] for r in data["results"]] == names
    assert [r["devices"] for r in data["results"]] == [["x86"], ["x86"], ["host"], ["host"]]
    for result in data["results"]:
        check_types(result, RESULT, optional=("rss_before_mib",))
        assert (result["runs"], result["under_load"]["runs"], result["under_load"]["concurrent"]) == (6, 6, 2)
        order = [result[f"latency_{name}_ms"] for name in ("min", "p50", "p90", "p95", "p99", "max")]
        assert order == sorted(order)
        assert order[0] > 0
        assert [*result["peak_rss_mib"]] == ["load", "compile", "first_run", "runs", "concurrent_runs"]
    assert data["inputs"] == {"x": "random, seed 0"}
    assert data["agreement"]["ok"] is True
    assert {"name": "--iterations", "value": "6", "origin": "command line"} in data["options"]
    assert {"name": "threads", "value": "2", "origin": "command line"} in data["results"][1]["options"]


def test_an_open_batch_is_one_item(onnx_model: Path) -> None:
    run = bench(onnx_model, "-b", "host", "-n", "1", "--json")
    data = json.loads(run.out)
    assert data["input_types"] == {"x": "float32[1, 8]"}
    note = data["notes"][0]
    assert "--shape x=" in note
    assert f"note: {data['notes'][0]}\n" in run.err
    given = json.loads(bench(onnx_model, "-b", "host", "-n", "1", "-s", "3x8", "--json").out)
    assert given["input_types"] == {"x": "float32[3, 8]"}
    assert not any("--shape" in line for line in given["notes"])


def test_tables_of_a_paddle_model() -> None:
    shown = bench(TINY, "-b", "host", "-t", "1", "-t", "2", "-n", "2").out
    for part in ("option", "p99", "host, 1 thread   21 on host", "outputs agree", "--iterations", "MiB"):
        assert part in shown


def test_files_of_a_measurement(onnx_model: Path, tmp_path: Path) -> None:
    table, page, saved = (tmp_path / name for name in ("a.csv", "a.html", "a.json"))
    bench(onnx_model, "-b", "host", "-n", "20", "--csv", table, "--html", page, "--save", saved)
    with table.open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["name"], row["runs"], row["under_load_runs"]) == ("host", "20", "")
    assert float(row["latency_p50_ms"]) > 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") >= 2
    assert "http://" not in text.partition("<body>")[2]
    data = json.loads(saved.read_text())
    assert sum(map(len, data["results"][0]["latencies_ms"])) == 20
    again = json.loads(bench(onnx_model, "-b", "host", "-n", "20", "--against", saved, "--json").out)
    assert all("other processes" in line for line in again["against"]["unlike"])
    assert again["against"]["changes"][0]["verdict"] in ("slower", "faster", "no difference")
    shown = bench(onnx_model, "-b", "host", "-n", "20", "-s", "2x8", "--against", saved).out
    assert "unlike: inputs: x float32[1, 8] then, x float32[2, 8] now" in shown


def test_names_are_escaped_in_the_page(onnx_model: Path, tmp_path: Path) -> None:
    evil = tmp_path / "<script>alert(1)&.onnx"
    onnx_model.rename(evil)
    bench(evil, "-b", "host", "-n", "1", "--html", tmp_path / "a.html")
    assert "<script>alert" not in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_code_of_a_file_is_told_from_code_compiled_here(onnx_model: Path, tmp_path: Path) -> None:
    convert(onnx_model, tmp_path / "small.lite", "x86", verify=False)
    (prepared,) = json.loads(bench(tmp_path / "small.lite", "-b", "x86", "-n", "1", "--json").out)["results"]
    (other,) = json.loads(bench(tmp_path / "small.lite", "-b", "x86", "-n", "1", "-s", "5x8", "--json").out)["results"]
    assert (prepared["code_from"], other["code_from"]) == ("file", "here")
    assert prepared["kernels"] == {"x86": {"found": 0, "compiled": 0, "compile_ms": 0.0}}
    assert prepared["options"][2]["origin"] == "the .lite file"


def test_outputs_that_differ_end_with_1(tmp_path: Path) -> None:
    builder = GraphBuilder("rounding")
    builder.output(builder.add("Softmax", [builder.input("x", "float32", [64, 500])]), "y")
    write(builder.build(), tmp_path / "rounding.onnx")
    options = ["-b", "host", "-b", "x86", "-n", "1", "--json"]
    strict = bench(tmp_path / "rounding.onnx", *options, "--limit", "0")  # sums are rounded in another order
    found = json.loads(strict.out)["agreement"]
    assert (strict.code, found["ok"], found["allowed_share_of_range"]) == (1, False, 0)
    assert "outputs DIFFER: x86 differs from host in 'y'" in found["sentences"][0]
    text = bench(tmp_path / "rounding.onnx", *options[:-1], "--limit", "0", "-t", "2").out
    assert text.splitlines()[-1] == (
        f"next: lite compare {tmp_path / 'rounding.onnx'} --a host --a-threads 2 --b x86 --threads 2"
    )
    usual = bench(tmp_path / "rounding.onnx", *options)
    assert (usual.code, json.loads(usual.out)["agreement"]["ok"]) == (0, True)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-b", "nonsense", "--shape", "2x8"], 3, "nonsense"),
        (["--shape", "2x9"], 2, "x"),
        (["--seconds", "0"], 2, "--seconds"),
        (["--html", "no/where/a.html"], 2, "--html"),
        (["--against", "nowhere.json"], 2, "--save FILE"),
    ],
)
def test_errors_name_the_option(onnx_model: Path, options: list[str], code: int, message: str) -> None:
    run = bench(onnx_model, *options)
    assert run.code == code, run.err
    assert message in run.err
