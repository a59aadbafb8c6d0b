"""Names of output files: the ending says the format, and nothing else is written in silence."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from lite_core.errors import InputError
from lite_tools.cli.run import command as run_command
from lite_tools.commands.output_names import arrays_file, model_file
from lite_tools.conversion import convert


@pytest.mark.parametrize("name", ["m.lite", "m.LITE", "a.b.lite"])
def test_lite_files_keep_their_names(name: str) -> None:
    assert model_file(Path(name)) == (Path(name), None)


def test_a_name_without_an_ending_gets_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert model_file(Path("folder.d/m")) == (Path("folder.d/m.lite"), None)
    assert arrays_file("y") == "y.npz"
    told = capsys.readouterr().err
    assert "has no ending" in told
    assert "'y.npz' is written" in told


def test_formats_of_plugins() -> None:
    path, writer = model_file(Path("m.onnx"))
    assert (path, writer and writer.name) == (Path("m.onnx"), "onnx")


@pytest.mark.parametrize("name", ["m.tflite", "m.v2", "m.bin", "m.npz"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        model_file(Path(name))
    assert f"no plugin writes {Path(name).suffix}; end it with .lite (Lite's own)" in refused.value.message


def test_formats_that_can_only_be_read_are_refused() -> None:
    with pytest.raises(InputError, match="can be read but not written"):
        model_file(Path("m.pdmodel"))


def test_convert_refuses_the_ending_of_another_format(relu_model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the name ends in '\.onnx'; end it in \.lite"):
        convert(relu_model, tmp_path / "m.onnx", "host")
    assert not (tmp_path / "m.onnx").exists()
    convert(relu_model, tmp_path / "m", "host", verify=False)
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("name", "names", "problem"),
    [
        ("y.csv", ["y"], "arrays are not written as .csv"),
        ("y.npy", ["y", "z"], ".npy holds one array, and there are 2: y, z"),
        ("y.npy", [], "there are 0"),
    ],
)
def test_files_of_arrays_that_are_refused(name: str, names: list[str], problem: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        arrays_file(name, names)
    assert problem in refused.value.message
    assert "end it with .npz" in refused.value.message


def test_outputs_in_each_format(relu_model: Path, tmp_path: Path) -> None:
    for name in ("y.npy", "y.npz"):
        shown = CliRunner().invoke(run_command, [str(relu_model), "-b", "host", "-o", str(tmp_path / name)])
        assert shown.exit_code == 0, shown.output
    array = np.load(tmp_path / "y.npy")
    with np.load(tmp_path / "y.npz") as archive:
        np.testing.assert_array_equal(archive["y"], array)
    assert array.shape == (2, 3)
