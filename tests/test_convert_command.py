"""``lite convert`` and ``lite check --targets`` with the arguments of a user, on a small real model."""

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


def assert_computes_like_paddle(file: Path) -> None:
    """Assert that a converted file computes Paddle's outputs."""
    session = lite_api.load(file)
    with np.load(INPUTS) as given, np.load(OUTPUTS) as expected:
        found = session.run({name: given[name] for name in given.files})
        for name in expected.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


# **** lite convert ****


def test_convert_shows_passes_targets_and_checks(output: Path) -> None:
    completed = lite("convert", TINY, "-o", output, "--targets", "x86", "--data", INPUTS)
    assert completed.returncode == 0, completed.stderr
    for text in ("BatchNormalization  3     0", str(output)):
        assert text in completed.stdout
    assert_computes_like_paddle(output)


def test_convert_as_json(output: Path) -> None:
    completed = lite(
        "convert", TINY, "-o", output, "--targets", "x86,host", "--weights", "int8", "--prepare", "--json",
        "-s", "1x3x32x32", "-s", "3x3x32x32", "--threads", "1,4",
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    data = json.loads(completed.stdout)
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
        (("--targets", "x86,metal"), 3, "'metal'"),
        (("--targets", ","), 2, "--targets"),
        (("--limit", "0"), 1, "--force"),
        (("--input-shape", "3x3"), 2, "3x3"),
        (("--input-shape", "axb"), 2, "--input-shape"),
        (("--input-shape", "y=1x3"), 2, "'y'"),
        (("--threads", "1,0"), 2, "'1,0'"),
        (("--threads", ""), 2, "''"),
        (("--weights", "int3"), 2, "'int3'"),
        (("--precision", "int8"), 2, "'int8'"),
        (("--data", "nowhere.npz"), 2, "'nowhere.npz'"),
        (("--output", "nowhere/model.lite"), 2, "nowhere"),
    ],
)
def test_convert_errors_write_nothing(output: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    completed = lite("convert", TINY, "-o", output, "--targets", "x86", *arguments)
    assert (completed.returncode, "Traceback" in completed.stderr) == (code, False), completed.stderr
    assert message in completed.stderr
    assert "next: lite" in completed.stderr
    assert list(output.parent.iterdir()) == []


def test_a_file_that_disagrees_is_written_only_when_forced(output: Path) -> None:
    completed = lite("convert", TINY, "-o", output, "--targets", "x86", "--limit", "0", "--force")
    assert completed.returncode == 0, completed.stderr
    assert output.exists()


# **** lite run ****


def test_run_reports_why_prepared_partitions_are_not_used(output: Path) -> None:
    assert lite("convert", TINY, "-o", output, "--targets", "x86,host", "-s", "2x3x32x32").returncode == 0

    def devices_and_log(**environment: str) -> tuple[list[str], str]:
        completed = lite("run", output, "-i", INPUTS, "--json", **environment)
        assert completed.returncode == 0, completed.stderr
        data = json.loads(completed.stdout)
        return data["devices"], "\n".join(data["selection_log"])

    devices, plain_log = devices_and_log()
    assert devices == ["x86"]
    devices, log = devices_and_log(LITE_BACKENDS="")
    assert devices == ["host"]
    assert "x86: LITE_BACKENDS=" in log
    assert devices_and_log(LITE_BACKEND="host")[0] == ["host"]
    devices, log = devices_and_log(LITE_SAVED="ignore")
    assert devices == ["x86"]
    assert "LITE_SAVED=ignore" in log
    assert "LITE_SAVED" not in plain_log
    assert lite("convert", output, "-o", output, "--targets", "x86", "--no-verify").returncode == 0
    assert devices_and_log(LITE_BACKENDS="")[0] == ["host"]


def test_run_uses_random_inputs_of_a_prepared_shape(output: Path) -> None:
    assert lite("convert", TINY, "-o", output, "--targets", "x86", "-s", "3x3x32x32", "--no-verify").returncode == 0
    for command in (("run", output), ("inspect", output, "--memory")):
        completed = lite(*command)
        assert completed.returncode == 0, completed.stderr
        assert "[3, 3, 32, 32]" in completed.stdout
    assert "[5, 3, 32, 32]" in lite("run", output, "-s", "5x3x32x32").stdout


def test_run_validate_names_the_first_node_that_is_not_finite(tmp_path: Path) -> None:
    with np.load(INPUTS) as given:
        inputs = {name: given[name] for name in given.files}
    completed = lite("run", TINY, "-i", INPUTS, "--validate", "-b", "x86")
    assert completed.returncode == 0, completed.stderr
    infinite = tmp_path / "spoilt.npz"
    np.savez(infinite, **{name: np.full_like(array, np.inf) for name, array in inputs.items()})
    completed = lite("run", TINY, "-i", infinite, "--validate", "-b", "x86")
    assert completed.returncode == 1
    assert "'conv2d_0.tmp_0'" in completed.stdout


# **** lite inspect ****


def test_inspect_shows_targets_and_sections_of_a_file(output: Path) -> None:
    shapes = ("-s", "1x3x32x32", "-s", "2x3x32x32", "--threads", "1,2")
    assert lite("convert", TINY, "-o", output, "--targets", "x86,host", *shapes, "--no-verify").returncode == 0
    completed = lite("inspect", output, "--ops")
    assert completed.returncode == 0, completed.stderr
    assert f"file {next(TINY.glob('*.pdmodel')).name}\n" in completed.stdout
    for text in ("lite-x86", "x=1x3x32x32", "2x3x32x32"):
        assert text in completed.stdout
    completed = lite("inspect", output, "--sections")
    assert completed.returncode == 0, completed.stderr
    rows = {row.split()[0]: row for row in completed.stdout.splitlines() if row and not row.startswith(" ")}
    assert {"graph", "constants/0", "targets", "code/0"} <= {*rows}
    assert "x86/0" in rows["code/0"]
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
    completed = lite("inspect", output, "--sections")
    assert completed.returncode == 6
    assert "constants/1" in completed.stderr
    completed = lite("inspect", output, "--sections", "--json")
    assert completed.returncode == 6
    data = json.loads(completed.stdout)
    assert [section["name"] for section in data["sections"] if not section["whole"]] == ["constants/1"]


def test_inspect_shows_sections_of_model_files_only() -> None:
    completed = lite("inspect", TINY, "--sections")
    assert completed.returncode == 2
    assert "`lite convert`" in completed.stderr


# **** lite check --targets ****


def test_check_asks_targets() -> None:
    completed = lite("check", TINY, "--targets", "x86 host", "--json")
    data = json.loads(completed.stdout)
    assert completed.returncode == 0, completed.stderr
    assert [(t["target"], t["supported"], t["nodes"]) for t in data["targets"]] == [("x86", 21, 21), ("host", 21, 21)]
    completed = lite("check", TINY, "--targets", "x86,metal")
    assert completed.returncode == 3
    assert "'metal'" in completed.stdout
