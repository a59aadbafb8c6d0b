"""Suggestions for misspelt names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_tools.commands.suggestions import did_you_mean, similar_file, similar_names

BACKENDS = ["arm", "auto", "host", "null", "numba", "onnxruntime", "opencl", "x86"]
COMMANDS = ["backends", "bench", "bisect", "check", "compare", "convert", "inspect", "run", "report", "tune", "trust"]


@pytest.mark.parametrize(
    ("given", "names", "first"),
    [
        ("X86", BACKENDS, "x86"),
        ("x68", BACKENDS, "x86"),
        ("opncl", BACKENDS, "opencl"),
        ("OnnxRuntime", BACKENDS, "onnxruntime"),
        ("rum", COMMANDS, "run"),
        ("becnh", COMMANDS, "bench"),
        ("compair", COMMANDS, "compare"),
        ("--repaet", ["--repeat", "--reader", "--precision"], "--repeat"),
        ("fp16", ["float32", "float16", "bfloat16"], "float16"),
        ("half", ["float32", "float16"], "float16"),
    ],
)
def test_what_was_meant(given: str, names: list[str], first: str) -> None:
    assert similar_names(given, names)[0] == first
    assert did_you_mean(given, names).startswith(f"did you mean {first}")


@pytest.mark.parametrize("given", ["metal", "cuda", "", "z", "tensorrt", "memory"])
def test_nothing_similar(given: str) -> None:
    assert similar_names(given, [*BACKENDS, "demo"]) == []
    assert did_you_mean(given, BACKENDS) == ""


def test_options_are_not_similar_because_of_their_dashes() -> None:
    assert similar_names("--taget", ["--time", "--targets"]) == ["--targets"]
    assert similar_names("--taget", ["--time"]) == []


def test_a_name_in_other_letters_is_the_only_one() -> None:
    assert similar_names("CHECK", [*COMMANDS, "checks"]) == ["check"]


def test_less_similar_names_are_left_out() -> None:
    assert similar_names("--repaet", ["--reader", "--repeat"]) == ["--repeat"]


def test_files(tmp_path: Path) -> None:
    for name in ("model.onnx", "model.npz", ".hidden.onnx"):
        (tmp_path / name).touch()
    assert similar_file(str(tmp_path / "mdoel.onnx")) == str(tmp_path / "model.onnx")
    assert similar_file(str(tmp_path / "mdoel.npz")) == str(tmp_path / "model.npz")
    assert similar_file(str(tmp_path / "mdoel.lite")) == ""
    assert similar_file(str(tmp_path / "nowhere" / "model.onnx")) == ""
    assert similar_file("a\0b") == ""
