"""Known distributions of missing plugins: found by the name of a backend or command, or by a file's name or content."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lite_core.plugins import known
from lite_core.plugins.known import format_distribution, known_distributions


def test_distributions_of_backends_commands_and_formats() -> None:
    assert known_distributions("backends")["x86"] == "lite-x86"
    assert known_distributions("backends")["opencl"] == "lite-opencl"
    assert known_distributions("commands")["opt"] == "lite-paddle"
    assert known_distributions("formats") == {"onnx": "lite-onnx", "paddle": "lite-paddle"}


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("model.onnx", "lite-onnx"),
        ("inference.pdmodel", "lite-paddle"),
        ("__model__", "lite-paddle"),
        ("picture.png", None),
        ("settings.json", None),
    ],
)
def test_format_is_found_by_the_name_of_a_file_that_need_not_exist(name: str, distribution: str | None) -> None:
    assert format_distribution(name) == distribution
    assert format_distribution(Path("nowhere") / name) == distribution


@pytest.mark.parametrize(
    ("beginning", "distribution"),
    [
        (b"\x08\x08\x12\x07pytorch", "lite-onnx"),
        (b"\x08\x0a\x3a\x80\x01", "lite-onnx"),
        (b"\x08\x88\x12", None),
        (b"\x0a\x81\x7a\x08\x00\x10\xff\xff", "lite-paddle"),
        (b'{"base_code": {"magic": "pir"', "lite-paddle"),
        (b'{\n  "base_code": {"magic": "pir"', "lite-paddle"),
        (b'{"name": "something"}', None),
        (b"", None),
    ],
)
def test_format_is_found_by_the_first_bytes_of_a_file(
    tmp_path: Path, beginning: bytes, distribution: str | None
) -> None:
    (tmp_path / "model").write_bytes(beginning)
    assert format_distribution(tmp_path / "model") == distribution
    assert format_distribution(tmp_path) == distribution


def test_format_of_a_folder_is_that_of_any_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("notes")
    (tmp_path / "folder").mkdir()
    assert format_distribution(tmp_path) is None
    (tmp_path / "b.onnx").write_bytes(b"")
    assert format_distribution(tmp_path) == "lite-onnx"


def test_file_of_known_distributions_is_read_on_demand() -> None:
    code = "import sys; from lite_core.plugins import known; print(known._known.cache_info().currsize)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "0"


def test_file_of_known_distributions_is_sorted() -> None:
    text = known._FILE.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"
