"""The command line with the arguments that a user would type."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NoReturn

import catalog
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "plugins/lite_paddle/src/lite_paddle/demo/picture.png"
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"
INPUTS = TINY.parent / "inputs.npz"

TOY = """
import types
import click
import lite_core
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class ToyFormat:
    name = "toy"
    suffixes = (".toy",)

    def sniff(self, path):
        return path.suffix == ".toy"

    def read(self, path):
        builder = lite_core.GraphBuilder("toy")
        x = builder.input("x", "float32", [2])
        builder.output(builder.add("LeakyRelu", [x], {"alpha": float("inf")}), "file")
        return builder.build()

@hookimpl
def lite_formats():
    return [ToyFormat()]

@hookimpl
def lite_commands():
    hello = click.Command("hello", callback=lambda: print("hello"))
    return [click.Command("run", callback=print), types.SimpleNamespace(name="fake", callback=print), hello]
"""


def lite(*arguments: str | Path, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **environment})


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a plugin that reads .toy files and declares three commands, of which one is usable."""
    installed = tmp_path / "installed"
    (installed / "lite_toy-1.0.dist-info").mkdir(parents=True)
    (installed / "lite_toy.py").write_text(TOY)
    (installed / "lite_toy-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: lite-toy\nVersion: 1.0\n")
    (installed / "lite_toy-1.0.dist-info/entry_points.txt").write_text("[lite.plugins]\ntoy = lite_toy\n")
    (tmp_path / "model.toy").touch()
    return {"PYTHONPATH": os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_run_on_arrays(tmp_path: Path) -> None:
    saved = tmp_path / "out.npz"
    completed = lite("run", TINY, "--input", INPUTS, "--save", saved, "--repeat", "2", "--backend", "host")
    assert completed.returncode == 0, completed.stderr
    with np.load(saved) as found, np.load(TINY / "outputs.npz") as expected:
        assert found.files == expected.files
        for name in found.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_run_on_an_image() -> None:
    path = catalog.ensure("pp_ocrv4_cls").model
    completed = lite(
        "run",
        path,
        "-i",
        PICTURE,
        "-s",
        "1x3x48x192",
        "--mean",
        "0.5",
        "--std",
        "0.5",
        "--backend",
        "host",
        "--json",
    )
    assert completed.returncode == 0, completed.stderr
    data = json.loads(completed.stdout)
    assert data["devices"] == ["host"]
    assert next(iter(data["outputs"].values()))["type"] == "float32[1, 2]"


def test_run_with_random_inputs_needs_shapes() -> None:
    path = catalog.ensure("pp_ocrv4_cls").model
    completed = lite("run", path)
    assert completed.returncode == 2
    assert "--shape x=1x3x" in completed.stderr
    assert lite("run", path, "--shape", "x=1x3x48x192").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "nowhere.pdmodel"), 2, "nowhere.pdmodel"),
        (("run", ROOT / "README.md"), 6, "README.md"),
        (("run", TINY, "--input", "y=x.npy"), 2, "'y'"),
        (("run", TINY, "--input", "x.npy"), 2, "'x.npy'"),
        (("run", TINY, "--shape", "3x3"), 2, "3x3"),
        (("run", TINY, "--shape", "axb"), 2, "--shape"),
        (("run", TINY, "--backend", "metal"), 3, "'metal'"),
        (("run", TINY, "--shape=-1x3x32x32"), 2, "--shape"),
        (("run", TINY, "--shape", "999999999999x3x32x32"), 1, "11,444,091.8 GiB"),
        (("run", TINY, "--shape", "999999999999999999x3x32x32"), 1, "GiB"),
        (("run", TINY, "--seed", "-1"), 2, "--seed"),
        (("run", TINY, "--std", "0"), 2, "--std"),
        (("run", TINY, "--std", "1,0,1"), 2, "--std"),
        (("run", TINY, "--mean", "nan"), 2, "--mean"),
        (("run", TINY, "--save", "nowhere/o.npz"), 2, "'nowhere'"),
        (("run", "nowhere.pdmodel", "--save", "nowhere/o.npz"), 2, "'nowhere'"),
        (("check", TINY, "--reader", "params"), 2, "NAME=JSON"),
        (("check", TINY, "--reader", "params=x"), 2, "JSON"),
        (("check", TINY, "--reader", "lengths={}"), 2, "lengths"),
        (("nonsense",), 2, "nonsense"),
        (("ops", "Nonsense"), 2, "Nonsense"),
    ],
)
def test_errors_suggest_a_next_step(arguments: tuple[str | Path, ...], code: int, message: str) -> None:
    completed = lite(*arguments)
    assert (completed.returncode, "Traceback" in completed.stderr) == (code, False), completed.stderr
    assert message in completed.stderr
    assert "next: lite" in completed.stderr


def test_inspect() -> None:
    completed = lite("inspect", TINY)
    assert completed.returncode == 0, completed.stderr
    assert "= Conv(" in completed.stdout
    data = json.loads(lite("inspect", TINY, "--json").stdout)
    assert data["metadata"]["format"] == "paddle"
    assert data["op_counts"]["Conv"] >= 1
    assert any(n["origin"]["op"] == "conv2d" for n in data["nodes"] if n["op"] == "Conv")
    for flags in (["--ops"], ["--weights"], ["--optimized"], ["--origins"]):
        assert lite("inspect", TINY, *flags).returncode == 0


def test_check() -> None:
    completed = lite("check", TINY)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(lite("check", TINY, "--json").stdout)["ok"] is True


def test_ops() -> None:
    assert "Conv" in lite("ops").stdout
    assert "dilations" in lite("ops", "Conv").stdout
    names = {o["name"] for o in json.loads(lite("ops", "--json").stdout)["operators"]}
    assert {"Conv", "LSTM", "Loop", "Resize"} <= names


def test_log_from_the_environment() -> None:
    for environment in ({"LITE_LOG": "debug"}, {"GLOG_v": "5"}):
        completed = lite("run", TINY, "--shape", "1x3x32x32", **environment)
        assert "lite.plugins: plugin 'paddle'" in completed.stderr


@pytest.mark.parametrize("prefix", ["", "x="])
@pytest.mark.parametrize("name", ["junk.npz", "junk.npy", "junk.png", "empty.npy", "truncated.npz", "flipped.npz"])
def test_damaged_input_files(tmp_path: Path, prefix: str, name: str) -> None:
    sound = INPUTS.read_bytes()
    middle = len(sound) // 2
    contents = {
        "junk": b"this is no array\n",
        "empty": b"",
        "truncated": sound[:middle],
        "flipped": sound[:middle] + bytes(255 - b for b in sound[middle : middle + 8]) + sound[middle + 8 :],
    }
    (tmp_path / name).write_bytes(contents[name.partition(".")[0]])
    completed = lite("run", TINY, "-i", f"{prefix}{name}", folder=tmp_path)
    assert (completed.returncode, "Traceback" in completed.stderr) == (2, False), completed.stderr
    assert name in completed.stderr


def test_truncated_picture(tmp_path: Path) -> None:
    (tmp_path / "half.png").write_bytes(PICTURE.read_bytes()[:5000])
    completed = lite("run", TINY, "-i", "half.png", folder=tmp_path)
    assert completed.returncode == 2
    assert "half.png" in completed.stderr


def test_arrays_larger_than_their_file(tmp_path: Path) -> None:
    with (tmp_path / "huge.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    completed = lite("run", TINY, "-i", "huge.npy", folder=tmp_path)
    assert (completed.returncode, "Traceback" in completed.stderr) == (2, False), completed.stderr
    assert f"{4 * 10**15} bytes" in completed.stderr


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_an_existing_file_takes_precedence_over_a_name(tmp_path: Path, suffix: str) -> None:
    with np.load(INPUTS) as archive:
        x = archive["x"]
    file = tmp_path / f"a=b.{suffix}"
    with file.open("wb") as opened:
        np.save(opened, x) if suffix == "npy" else np.savez(opened, x=x)
    completed = lite("run", TINY, "-i", file.name, "--json", folder=tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["inputs"] == {"x": file.name}


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (3,)])
def test_inputs_of_a_wrong_shape_are_usage_errors(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    model = tmp_path / "a model"
    shutil.copytree(TINY, model)
    completed = lite("run", "-b", "host", model, "-i", "x.npy", folder=tmp_path)
    assert (completed.returncode, "Traceback" in completed.stderr) == (2, False), completed.stderr
    assert "'x'" in completed.stderr
    assert f"next: lite inspect '{model}'" in completed.stderr


def test_outputs_are_written_in_the_format_that_their_name_says(tmp_path: Path, toy: dict[str, str]) -> None:
    completed = lite("run", "model.toy", "--save", "out", folder=tmp_path, **toy)
    assert completed.returncode == 0, completed.stderr
    assert "note: 'out' has no ending: 'out.npz' is written" in completed.stderr
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.namelist() == ["file.npy"]
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs["file"].shape == (2,)
    completed = lite("run", "model.toy", "--save", "out.npy", folder=tmp_path, **toy)
    assert completed.returncode == 0, completed.stderr
    assert np.load(tmp_path / "out.npy").shape == (2,)
    completed = lite("run", "model.toy", "--save", "out.csv", folder=tmp_path, **toy)
    assert (completed.returncode, (tmp_path / "out.csv").exists()) == (2, False)
    assert "next: lite run model.toy --save out.npz" in completed.stderr


def no_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def test_json_is_strict(tmp_path: Path, toy: dict[str, str]) -> None:
    completed = lite("inspect", "model.toy", "--json", folder=tmp_path, **toy)
    assert completed.returncode == 0, completed.stderr
    data = json.loads(completed.stdout, parse_constant=no_constant)
    assert data["nodes"][0]["attributes"]["alpha"] == "inf"


def test_commands_of_plugins(tmp_path: Path, toy: dict[str, str]) -> None:
    assert lite("hello", **toy).stdout == "hello\n"
    completed = lite("--help", **toy)
    assert "hello" in completed.stdout
    assert "fake" not in completed.stdout
    assert "'toy' (lite-toy" in completed.stdout.partition("Plugins that failed")[2]
    completed = lite("doctor", "--json", **toy)
    assert completed.returncode == 1
    (record,) = [p for p in json.loads(completed.stdout)["plugins"] if p["name"] == "toy"]
    assert record["phase"] == "lite_commands"
    assert "is not a click.Command" in record["error"]
    assert "is taken by lite-tools" in record["error"]


def test_names_the_terminal_cannot_show(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "d é")
    completed = lite("check", "d é", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert completed.returncode == 0, completed.stderr
    assert "d \\xe9" in completed.stdout
    completed = lite("check", "d é/nowhere", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert completed.returncode == 2
    assert "d \\xe9/nowhere" in completed.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["ops", "Nonsense", "--json"], ["--help"]])
def test_full_disk(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "lite_core", *arguments]
    with open("/dev/full", "w") as full:
        completed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert completed.returncode == 1
    assert len(completed.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["ops", "Conv", "--json"], ["--help"]])
def test_closed_pipe(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        command = [sys.executable, "-m", "lite_core", *arguments]
        completed = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (completed.returncode, completed.stderr) == (1, "")


def test_tables_are_not_cut_without_a_terminal() -> None:
    completed = lite("ops", COLUMNS="30")
    (line,) = [line for line in completed.stdout.splitlines() if line.startswith("BatchNormalization")]
    assert line.rstrip().endswith("running_var: T2?")
