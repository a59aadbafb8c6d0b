"""``lite opt`` with the options of a Paddle-Lite user, on a small model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lite_core
from lite_core.container import ModelFile

LITE = "--optimize_out_type=lite"
TINY = Path(__file__).parents[3] / "tests/models/goldens/tiny_conv/legacy"


def lite(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def assert_computes_like_paddle(file: Path) -> None:
    """Assert that a converted file computes Paddle's results."""
    session = lite_core.load(file)
    with np.load(TINY.parent / "inputs.npz") as given, np.load(TINY / "outputs.npz") as expected:
        found = session.run({name: given[name] for name in given.files})
        for name in expected.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_opt_with_a_folder_and_with_two_files(tmp_path: Path) -> None:
    completed = lite("opt", f"--model_dir={TINY}", "--valid_targets", "x86", f"--optimize_out={tmp_path / 'a.nb'}")
    assert completed.returncode == 0, completed.stderr
    assert_computes_like_paddle(tmp_path / "a.nb")
    files = (f"--model_file={TINY / 'inference.pdmodel'}", f"--param_file={TINY / 'inference.pdiparams'}")
    out = (LITE, f"--optimize_out={tmp_path / 'b'}", "--json")
    completed = lite("opt", *files, "--valid_targets=host,host", *out)
    assert completed.returncode == 0, completed.stderr
    assert [target["name"] for target in json.loads(completed.stdout)["targets"]] == ["host"]
    assert_computes_like_paddle(tmp_path / "b.lite")


def test_opt_writes_a_paddle_program_with_kernels(tmp_path: Path) -> None:
    out = ("--optimize_out_type=protobuf", f"--optimize_out={tmp_path / 'p'}", "--json")
    completed = lite("opt", f"--model_dir={TINY}", "--valid_targets=opencl,arm", *out)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["kernels"]["OpenCL"] > 10
    program = (tmp_path / "p/model").read_bytes()
    assert b"conv2d/image2d/5/5/4" in program
    session = lite_core.load(tmp_path / "p/model", reader_options={"params": tmp_path / "p/params"})
    with np.load(TINY.parent / "inputs.npz") as given, np.load(TINY / "outputs.npz") as expected:
        found = session.run({name: given[name] for name in given.files})
        np.testing.assert_allclose(next(iter(found.values())), expected[expected.files[0]], atol=1e-5)


def test_opt_lists_what_a_tailored_paddle_lite_needs(tmp_path: Path) -> None:
    out = (f"--optimize_out={tmp_path / 'm'}", "--record_tailoring_info=true")
    completed = lite("opt", f"--model_dir={TINY}", "--valid_targets=arm", *out)
    assert completed.returncode == 0, completed.stderr
    assert "--record_tailoring_info" in completed.stderr
    assert "conv2d\n" in (tmp_path / "m/.tailored_ops_list").read_text()
    assert "conv2d,kARM,kFloat,kNCHW,def\n" in (tmp_path / "m/.tailored_kernels_list").read_text()


def test_opt_converts_every_model_of_a_set_into_a_separate_file(tmp_path: Path) -> None:
    models, out = tmp_path / "models", tmp_path / "out"
    for name in ("one", "two"):
        shutil.copytree(TINY, models / name)
    (models / "none").mkdir()
    completed = lite("opt", f"--model_set={models}", "--valid_targets=arm", f"--optimize_out={out}")
    assert completed.returncode == 1
    assert str(models / "none") in completed.stderr
    assert sorted(path.name for path in out.iterdir()) == ["one.nb", "two.nb"]
    assert_computes_like_paddle(out / "one.nb")


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("--sparse_model=true", "--sparse_threshold=0.5"), "--sparse_model"),
        (("--record_tailoring_info", "true"), "--record_tailoring_info"),
        (("--enable_fp16=true",), "--enable_fp16"),
        (("--quant_model=true", "--quant_type=QUANT_INT8"), ""),
    ],
)
def test_opt_continues_with_a_note(tmp_path: Path, arguments: tuple[str, ...], note: str) -> None:
    completed = lite(
        "opt", f"--model_dir={TINY}", "--valid_targets=host", LITE, f"--optimize_out={tmp_path / 'm'}", *arguments
    )
    assert completed.returncode == 0, completed.stderr
    assert note in completed.stderr
    assert (tmp_path / "m.lite").exists()


def test_opt_makes_a_file_for_arm_unless_told_otherwise(tmp_path: Path) -> None:
    completed = lite("opt", f"--model_dir={TINY}", LITE, f"--optimize_out={tmp_path / 'm'}")
    assert completed.returncode == 0, completed.stderr
    (record,) = ModelFile.open(tmp_path / "m.lite").targets
    assert (record.backend, record.level, set(record.devices)) == ("arm", "arm-v8", {"arm"})
    assert {plan.threads for plan in record.plans} == {1, 4}


def test_opt_draws_the_optimized_graph(tmp_path: Path) -> None:
    pytest.importorskip("pygraphviz", reason="pictures need the extra lite-tools[pictures]")
    converted, picture = f"--optimize_out={tmp_path / 'm'}", "--visualization_file_output_path"
    completed = lite("opt", "--model_dir", TINY, "--valid_targets=host", LITE, converted, picture, tmp_path / "a")
    assert completed.returncode == 0, completed.stderr
    assert "HardSwish" in (tmp_path / "a.html").read_text()
    assert_computes_like_paddle(tmp_path / "m.lite")
    completed = lite("opt", "--optimized_nb_model_path", tmp_path / "m.lite", picture, tmp_path / "b.svg", "--json")
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "b.svg").read_text().count('<g class="node node') == json.loads(completed.stdout)["nodes"] > 10


def test_opt_without_the_default_target_names_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "x86")
    completed = lite("opt", f"--model_dir={TINY}", LITE, f"--optimize_out={tmp_path / 'm'}")
    assert completed.returncode == 3
    assert "'arm'" in completed.stderr
    assert "--valid_targets" in completed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "--model_dir"),
        (("--model_dir", TINY), 2, "--optimize_out"),
        (("--model_dir", TINY, LITE, "--optimize_out", "m", "--valid_targets", "host", "metal"), 3, "'metal'"),
        (("--model_dir", TINY, LITE, "--optimize_out", "m", "--valid_targets", "arm_metal"), 3, "'metal'"),
        (("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "huawei_kirin_npu"), 2, "'huawei_kirin_npu'"),
        (("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "x86,arm"), 2, "x86 and arm"),
        (("--model_dir", TINY, "--optimize_out", "m", "--valid_targets", "host"), 1, "conv2d"),
        (("--model_dir", "nowhere", "--optimize_out", "m", "--valid_targets", "host"), 2, "nowhere"),
        (("--model_dir", TINY, "--optimize_out", "nowhere/m"), 2, "'nowhere'"),
        (("--model_file", TINY / "inference.pdmodel", "--param_file", "nowhere", "--optimize_out", "m"), 2, "nowhere"),
        (("--model_dir", TINY, "--optimize_out_type", "flatbuffer"), 2, "--optimize_out_type"),
        (("--model_dir", TINY, LITE, "--quant_model=true"), 2, "--quant_type QUANT_INT8"),
        (("--model_dir", TINY, "--quant_model=true", "--enable_fp16=true"), 2, "--enable_fp16"),
        (("--model_dir", TINY, "--quant_type=QUANT_INT4"), 2, "'QUANT_INT4'"),
        (("--model_dir", TINY, "--sparse_threshold=2"), 2, "--sparse_threshold"),
        (("--enable_fp16=maybe",), 2, "'maybe'"),
        (("--optimized_nb_model_path=m.nb",), 2, "--visualization_file_output_path"),
        (("--model_set=m", "--visualization_file_output_path=m.svg"), 2, "--model_dir"),
        (("--model_set", "nowhere", "--optimize_out", "m"), 2, "--model_set"),
        (("--nonsense",), 2, "--nonsense"),
    ],
)
def test_opt_reports_errors(tmp_path: Path, arguments: tuple[str | Path, ...], code: int, message: str) -> None:
    completed = lite("opt", *arguments, folder=tmp_path)
    assert (completed.returncode, "Traceback" in completed.stderr) == (code, False), completed.stderr
    assert message in completed.stderr
    assert "next: lite" in completed.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--print_all_ops=true",), "yolo_box"),
        (("--print_all_ops_in_md_format=true", "--valid_targets=x86"), "| `lstm` | no | host |"),
        (("--print_supported_ops=true", "--valid_targets=opencl,arm"), "opencl, arm"),
        (("--display_kernels=true",), " - relu\n"),
        (("--print_model_ops=true", f"--model_dir={TINY}", LITE, "--valid_targets=host"), "21"),
        (("--print_model_ops=true", f"--model_dir={TINY}", "--valid_targets=x86"), "Paddle-Lite can run it"),
        (("--version",), "lite opt, version"),
    ],
)
def test_opt_prints_and_succeeds(arguments: tuple[str, ...], text: str) -> None:
    completed = lite("opt", *arguments)
    assert completed.returncode == 0, completed.stderr
    assert text in completed.stdout
