"""``lite convert`` and ``lite check --targets``, as a user types them, on a small real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lite_core as lite_api

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"
INPUTS = TINY.parent / "inputs.npz"
OUTPUTS = TINY / "outputs.npz"


def lite(*arguments: str | Path, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **environment})


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "model.lite"


def answer(file: Path) -> None:
    """A converted file computes what Paddle does."""
    session = lite_api.load(file)
    with np.load(INPUTS) as given, np.load(OUTPUTS) as expected:
        found = session.run({name: given[name] for name in given.files})
        for name in expected.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


# **** lite convert ****


def test_convert_shows_passes_targets_and_checks(output: Path) -> None:
    shown = lite("convert", TINY, "-o", output, "--targets", "x86", "--data", INPUTS)
    assert shown.returncode == 0, shown.stderr
    for text in ("as it was read  34", "BatchNormalization  3     0", "21 on x86", "given data", " yes ", "written: "):
        assert text in shown.stdout
    answer(output)


def test_convert_as_json(output: Path) -> None:
    shown = lite(
        "convert", TINY, "-o", output, "--targets", "x86,host", "--weights", "int8", "--prepare", "--json",
        "-s", "1x3x32x32", "-s", "3x3x32x32", "--threads", "1,4",
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert [target["name"] for target in data["targets"]] == ["x86", "host"]
    assert [plan["x"] for plan in data["targets"][0]["plans"]] == [[1, 3, 32, 32], [3, 3, 32, 32]]
    assert data["targets"][0]["threads"] == [1, 4]
    checked = [(check["target"], check["threads"]) for check in data["checks"] if check["shapes"]["x"][0] == 1]
    assert checked[:3] == [("references", None), ("x86", 1), ("x86", 4)]
    assert data["agrees"] is True
    assert (data["precision"], data["stored_as"]) == ("float32", "int8")
    assert data["size"] == output.stat().st_size
    assert data["weights"][0]["bytes_after"] < data["weights"][0]["bytes_before"] / 3
    assert data["accuracy"][0]["top1_agreement"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--targets", "x86,arm"), 3, "'arm': no plugin that is installed brings it"),
        (("--targets", ","), 2, "name at least one target"),
        (("--limit", "0"), 1, "allowed is 0"),
        (("--input-shape", "3x3"), 2, "3x3 does not fit"),
        (("--input-shape", "axb"), 2, "Invalid value for --input-shape: a shape reads like"),
        (("--input-shape", "y=1x3"), 2, "there is no input 'y'"),
        (("--threads", "1,0"), 2, "numbers of threads read like 1,4, not like '1,0'"),
        (("--threads", ""), 2, "numbers of threads read like 1,4, not like ''"),
        (("--weights", "int4"), 2, "'int4' is not one of 'float32'"),
        (("--precision", "int8"), 2, "'int8' is not one of 'float32'"),
        (("--data", "nowhere.npz"), 2, "there is no file 'nowhere.npz'"),
        (("--output", "nowhere/model.lite"), 2, "there is no folder"),
    ],
)
def test_convert_says_what_is_wrong_and_writes_nothing(
    output: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    shown = lite("convert", TINY, "-o", output, "--targets", "x86", *arguments)
    assert (shown.returncode, "Traceback" in shown.stderr) == (code, False), shown.stderr
    assert message in shown.stderr
    assert "next: lite" in shown.stderr
    assert list(output.parent.iterdir()) == []


def test_a_file_that_disagrees_is_written_only_when_forced(output: Path) -> None:
    shown = lite("convert", TINY, "-o", output, "--targets", "x86", "--limit", "0", "--force")
    assert shown.returncode == 0, shown.stderr
    assert "DISAGREES" in shown.stdout
    assert output.exists()


# **** lite run ****


def test_run_says_why_a_file_does_not_run_as_it_was_made_to(output: Path) -> None:
    assert lite("convert", TINY, "-o", output, "--targets", "x86,host", "-s", "2x3x32x32").returncode == 0

    def last_lines(**environment: str) -> list[str]:
        shown = lite("run", output, "-i", INPUTS, **environment)
        assert shown.returncode == 0, shown.stderr
        lines = shown.stdout.splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("ran on "))
        return [line.partition(" in ")[0] for line in lines[start:]]

    assert last_lines() == ["ran on x86"]
    assert last_lines(LITE_BACKENDS="") == [
        "ran on host",
        "the file is made for x86, host",
        "x86: LITE_BACKENDS= leaves it out",
    ]
    assert last_lines(LITE_BACKEND="host") == ["ran on host"]
    stale = "x86: what the model's file has prepared is not used: LITE_SAVED=ignore is set; it is compiled anew"
    assert last_lines(LITE_SAVED="ignore") == ["ran on x86", stale]
    assert lite("convert", output, "-o", output, "--targets", "x86", "--no-verify").returncode == 0
    none = "the file is made for x86; none of them is here, so it was compiled for what is"
    assert last_lines(LITE_BACKENDS="")[1] == none


def test_run_makes_random_inputs_of_a_shape_that_the_file_is_prepared_for(output: Path) -> None:
    assert lite("convert", TINY, "-o", output, "--targets", "x86", "-s", "3x3x32x32", "--no-verify").returncode == 0
    for command in (("run", output), ("inspect", output, "--memory")):
        shown = lite(*command)
        assert shown.returncode == 0, shown.stderr
        assert "[3, 3, 32, 32]" in shown.stdout
    assert "[5, 3, 32, 32]" in lite("run", output, "-s", "5x3x32x32").stdout


def test_run_validate_names_the_first_node_that_is_not_finite(tmp_path: Path) -> None:
    with np.load(INPUTS) as given:
        inputs = {name: given[name] for name in given.files}
    shown = lite("run", TINY, "-i", INPUTS, "--validate", "-b", "x86")
    assert shown.returncode == 0, shown.stderr
    assert "validated: the results of all nodes are finite" in shown.stdout
    spoilt = tmp_path / "spoilt.npz"
    np.savez(spoilt, **{name: np.full_like(array, np.inf) for name, array in inputs.items()})
    shown = lite("run", TINY, "-i", spoilt, "--validate", "-b", "x86")
    assert shown.returncode == 1
    assert "results of nodes, first that of\nnode '" in shown.stdout
    assert "(Conv, from conv2d 'conv2d_0.tmp_0') on x86: " in shown.stdout


# **** lite inspect ****


def test_inspect_shows_what_a_file_is_made_for_and_its_sections(output: Path) -> None:
    shapes = ("-s", "1x3x32x32", "-s", "2x3x32x32", "--threads", "1,2")
    assert lite("convert", TINY, "-o", output, "--targets", "x86,host", *shapes, "--no-verify").returncode == 0
    shown = lite("inspect", output, "--ops")
    assert shown.returncode == 0, shown.stderr
    assert f"file {next(TINY.glob('*.pdmodel')).name}\n" in shown.stdout
    for text in (
        "for x86, by lite-x86",
        "21 nodes on x86",
        "prepared for x=1x3x32x32, 1 thread\n",
        "2x3x32x32, 2 threads",
    ):
        assert text in shown.stdout
    shown = lite("inspect", output, "--sections")
    assert shown.returncode == 0, shown.stderr
    rows = {row.split()[0]: row for row in shown.stdout.splitlines() if row and not row.startswith(" ")}
    assert {"graph", "constants/0", "targets", "saved/0"} <= {*rows}
    assert "x86/0" in rows["saved/0"]
    data = json.loads(lite("inspect", output, "--sections", "--json").stdout)
    assert [target["backend"] for target in data["targets"]] == ["x86", "host"]
    assert all(section["whole"] for section in data["sections"])


def test_inspect_names_the_sections_that_are_damaged(output: Path) -> None:
    assert lite("convert", TINY, "-o", output, "--targets", "host").returncode == 0
    with output.open("r+b") as file:
        for section in json.loads(lite("inspect", output, "--sections", "--json").stdout)["sections"]:
            if section["name"] == "constants/1":
                file.seek(section["offset"])
                byte = file.read(1)[0]
                file.seek(section["offset"])
                file.write(bytes([byte ^ 1]))
    shown = lite("inspect", output, "--sections")
    assert shown.returncode == 3
    assert [row.split()[0] for row in shown.stdout.splitlines() if "DO NOT FIT" in row] == ["constants/1"]
    assert "1 section(s) are damaged: constants/1; copy the file again" in shown.stderr


def test_inspect_shows_sections_of_model_files_only() -> None:
    shown = lite("inspect", TINY, "--sections")
    assert shown.returncode == 2
    assert "`lite convert` makes one" in shown.stderr


# **** lite check --targets ****


def test_check_asks_targets() -> None:
    shown = lite("check", TINY, "--targets", "x86 host", "--json")
    data = json.loads(shown.stdout)
    assert shown.returncode == 0, shown.stderr
    assert [(t["target"], t["supported"], t["nodes"]) for t in data["targets"]] == [("x86", 21, 21), ("host", 21, 21)]
    shown = lite("check", TINY, "--targets", "x86,arm")
    assert shown.returncode == 3
    assert "'arm': no plugin that is installed brings it" in shown.stdout
