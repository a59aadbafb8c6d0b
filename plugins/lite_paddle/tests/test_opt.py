"""``lite opt``, as a user of Paddle-Lite types it, on a small model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lite_core

TINY = Path(__file__).parents[3] / "tests/models/goldens/tiny_conv/legacy"


def lite(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def answer(file: Path) -> None:
    """A converted file computes what Paddle does."""
    session = lite_core.load(file)
    with np.load(TINY.parent / "inputs.npz") as given, np.load(TINY / "outputs.npz") as expected:
        found = session.run({name: given[name] for name in given.files})
        for name in expected.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_opt_with_a_folder_and_with_two_files(tmp_path: Path) -> None:
    shown = lite("opt", f"--model_dir={TINY}", "--valid_targets", "host", f"--optimize_out={tmp_path / 'a.nb'}")
    assert shown.returncode == 0, shown.stderr
    answer(tmp_path / "a.lite")
    files = (f"--model_file={TINY / 'inference.pdmodel'}", f"--param_file={TINY / 'inference.pdiparams'}")
    shown = lite("opt", *files, "--valid_targets=host,host", f"--optimize_out={tmp_path / 'b'}", "--json")
    assert shown.returncode == 0, shown.stderr
    assert [target["name"] for target in json.loads(shown.stdout)["targets"]] == ["host"]
    answer(tmp_path / "b.lite")


def test_opt_converts_every_model_of_a_set_into_a_file_of_its_own(tmp_path: Path) -> None:
    models, out = tmp_path / "models", tmp_path / "out"
    for name in ("one", "two"):
        shutil.copytree(TINY, models / name)
    (models / "none").mkdir()
    shown = lite("opt", f"--model_set={models}", "--valid_targets=host", f"--optimize_out={out}")
    assert shown.returncode == 1
    assert "folder without a model in it" in shown.stderr
    assert sorted(path.name for path in out.iterdir()) == ["one.lite", "two.lite"]
    answer(out / "one.lite")


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("--sparse_model=true", "--sparse_threshold=0.5"), "has no sparse kernels"),
        (("--record_tailoring_info", "true"), "there is nothing to record"),
        (("--enable_fp16=true",), "loaded with precision='float16'"),
        (("--quant_model=true", "--quant_type=QUANT_INT8"), ""),
    ],
)
def test_opt_goes_on_with_a_note(tmp_path: Path, arguments: tuple[str, ...], note: str) -> None:
    shown = lite("opt", f"--model_dir={TINY}", "--valid_targets=host", f"--optimize_out={tmp_path / 'm'}", *arguments)
    assert shown.returncode == 0, shown.stderr
    assert note in shown.stderr
    assert (tmp_path / "m.lite").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "say which model"),
        (("--model_dir", TINY), 2, "say where to"),
        (("--model_dir", TINY, "--optimize_out", "m"), 3, "'arm': no plugin that is installed brings it"),
        (("--model_dir", TINY, "--optimize_out", "m"), 3, "is not given and stands for arm"),
        (
            ("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "host", "arm"),
            3,
            "'arm': no plugin that is installed brings it",
        ),
        (
            ("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "arm_metal"),
            3,
            "none of Lite's packages brings it",
        ),
        (
            ("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "huawei_kirin_npu"),
            3,
            "none of Lite's packages brings it",
        ),
        (("--model_dir", "nowhere", "--optimize_out", "m", "--valid_targets", "host"), 3, "there is no such file"),
        (("--model_dir", TINY, "--optimize_out", "nowhere/m"), 2, "there is no folder 'nowhere'"),
        (("--model_file", TINY / "inference.pdmodel", "--param_file", "nowhere", "--optimize_out", "m"), 3, "nowhere"),
        (("--model_dir", TINY, "--optimize_out_type", "protobuf"), 2, "Lite writes no Paddle program"),
        (("--model_dir", TINY, "--quant_model=true"), 2, "say --quant_type QUANT_INT8"),
        (("--model_dir", TINY, "--quant_type=QUANT_INT4"), 2, "'QUANT_INT4' is not one of"),
        (("--model_dir", TINY, "--sparse_threshold=2"), 2, "2.0 is not in the range"),
        (("--enable_fp16=maybe",), 2, "'maybe' is not one of"),
        (("--optimized_nb_model_path=m.nb",), 2, "`lite inspect MODEL` prints"),
        (("--model_set", "nowhere", "--optimize_out", "m"), 2, "no folder that holds folders"),
        (("--nonsense",), 2, "No such option"),
    ],
)
def test_opt_says_what_is_wrong(tmp_path: Path, arguments: tuple[str | Path, ...], code: int, message: str) -> None:
    shown = lite("opt", *arguments, folder=tmp_path)
    assert (shown.returncode, "Traceback" in shown.stderr) == (code, False), shown.stderr
    assert message in shown.stderr
    assert "next: lite" in shown.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--print_all_ops=true",), "lite.YoloBox"),
        (("--print_all_ops_in_md_format=true",), "| Relu | "),
        (("--print_supported_ops=true", "--valid_targets=host"), "lite check MODEL --targets host"),
        (("--display_kernels=true",), " - Relu\n"),
        (("--print_model_ops=true", f"--model_dir={TINY}", "--valid_targets=host"), "21"),
        (("--version",), "lite opt, version"),
    ],
)
def test_opt_prints_and_succeeds(arguments: tuple[str, ...], text: str) -> None:
    shown = lite("opt", *arguments)
    assert shown.returncode == 0, shown.stderr
    assert text in shown.stdout
