"""Recognition of Paddle models by path and content, and the errors for other files."""

from __future__ import annotations

import os
import pickle
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from lite_core.errors import InputError, ModelFormatError
from lite_paddle.reader import read, sniff

FIXTURES = Path(__file__).parent / "fixtures"
LEGACY = FIXTURES / "legacy_2.6" / "classifier" / "model.pdmodel"
PIR = FIXTURES / "pir_3.3" / "classifier" / "model.json"

# The start of an ONNX file (ir_version, producer), and of a protobuf message whose field 1 is a string.
ONNX = b"\x08\x08\x12\x07pytorch\x1a\x03" + b"2.1:" + bytes(40)
OTHER_PROTOBUF = b"\x0a\x05hello\x12\x03abc" + bytes(20)
LOOKS_NESTED = b"\x0a\x04\x0a\x02hi\x12\x03abc" + bytes(20)


@pytest.mark.parametrize(("path", "kind"), [(LEGACY, "legacy"), (PIR, "pir")])
def test_file_directory_and_stem(path: Path, kind: str) -> None:
    for way in (path, path.parent, path.with_suffix("")):
        assert sniff(way) == kind
        assert read(way).path == path
    assert sniff(str(path)) == kind


def test_the_name_does_not_matter(tmp_path: Path) -> None:
    renamed = shutil.copy(LEGACY, tmp_path / "picture.png")
    shutil.copy(LEGACY.with_suffix(".pdiparams"), tmp_path / "picture.pdiparams")
    assert sniff(renamed) == "legacy"
    assert len(read(renamed).parameters) == 8


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04rest", r"starts with b'PK.*a zip archive"),
        (b"\x1f\x8b" + bytes(20), "gzip"),
        (pickle.dumps({"a": 1}, protocol=2), "Python pickle.*never loaded.*paddle.jit.save"),
        (pickle.dumps({"a": 1}, protocol=4), "Python pickle"),
        (ONNX, "ONNX"),
        (OTHER_PROTOBUF, "not a ProgramDesc"),
        (LOOKS_NESTED, "not a ProgramDesc"),
        (b"\x1c\0\0\0TFL3" + bytes(20), "TensorFlow Lite"),
        (bytes(40), "looks like a Paddle parameter file"),
        (b'{"some": "json"}', "no Paddle PIR program"),
        (b'{"base_code": {"magic": "other"}}', "no Paddle PIR program"),
        (b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}', "safetensors"),
        (b"<!DOCTYPE html>", "HTML"),
        (b"hello world", "Expected a ProgramDesc"),
        (LEGACY.read_bytes()[:2000], "truncated"),
    ],
)
def test_foreign_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "model.pdmodel"
    path.write_bytes(data)
    assert sniff(path) is None
    assert sniff(tmp_path) is None
    with pytest.raises(ModelFormatError, match=message):
        read(path)
    with pytest.raises(ModelFormatError, match=r"no Paddle program in the directory.*model\.pdmodel"):
        read(tmp_path)


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    assert sniff(tmp_path / "nothing") is None
    assert sniff("bad\0name") is None
    with pytest.raises(ModelFormatError, match=r"does not exist.*nothing\.json, nothing\.pdmodel"):
        read(tmp_path / "nothing")


def test_a_missing_program_with_its_suffix(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"nothing\.pdmodel: the file does not exist$"):
        read(tmp_path / "nothing.pdmodel")


def test_an_empty_path_is_not_the_current_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PIR.parent)
    assert sniff("") is None
    with pytest.raises(InputError, match="path must be .* is str ''"):
        read("")
    with pytest.raises(InputError, match="params must be .* is str ''"):
        read(PIR, params="")
    with pytest.raises(InputError, match="path must be .* is str 'a.x00b'"):
        read("a\0b")


@pytest.mark.parametrize("path", [5, None, b"model.json"])
def test_values_other_than_paths_are_refused(path: Any) -> None:
    assert sniff(path) is None
    with pytest.raises(InputError, match=f"path must be .* is {type(path).__name__}"):
        read(path)
    if path is not None:  # the default
        with pytest.raises(InputError, match=f"params must be .* is {type(path).__name__}"):
            read(PIR, params=path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert sniff(tmp_path / "pipe.json") is None
    with pytest.raises(ModelFormatError, match=r"pipe\.json is no regular file"):
        read(tmp_path / "pipe.json")
    with pytest.raises(ModelFormatError, match=r"pipe\.json' is a named pipe"):  # opening it would wait for ever
        read(PIR, params=tmp_path / "pipe.json")


def _varint(number: int) -> bytes:
    groups = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])


@pytest.mark.parametrize("size", [6 << 30, 1 << 26])
@pytest.mark.parametrize("suffix", [".pdmodel", ".json"])
def test_huge_empty_files_are_refused_before_they_are_read(tmp_path: Path, suffix: str, size: int) -> None:
    """The beginning is that of a program; the rest takes no space on the disk."""
    path = tmp_path / f"model{suffix}"
    block = b"\x0a" + _varint(size - 20) + b"\x08\x00\x10\x00\x22" + _varint(size - 40) + b"\x0a"
    with path.open("wb") as file:
        file.write(block if suffix == ".pdmodel" else b'{"base_code": {"magic": "pir", "version": 1},')
        file.truncate(size)
    assert sniff(path) is not None
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match="bytes"):
        read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < (1 << 20 if size > 1 << 30 or suffix == ".json" else 2 * size)


def test_several_programs_in_a_directory(tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copy(LEGACY, tmp_path / f"{name}.pdmodel")
        shutil.copy(LEGACY.with_suffix(".pdiparams"), tmp_path / f"{name}.pdiparams")
    assert sniff(tmp_path) == "legacy"
    with pytest.raises(ModelFormatError, match=r"several programs.*first\.pdmodel.*second\.pdmodel"):
        read(tmp_path)
    assert read(tmp_path / "second").path.name == "second.pdmodel"
    (tmp_path / "second.pdmodel").rename(tmp_path / "inference.pdmodel")
    (tmp_path / "second.pdiparams").rename(tmp_path / "inference.pdiparams")
    assert read(tmp_path).path.name == "inference.pdmodel"


def test_both_kinds_with_one_stem(tmp_path: Path) -> None:
    for path in (LEGACY, PIR, PIR.with_suffix(".pdiparams")):
        shutil.copy(path, tmp_path / path.name)
    assert read(tmp_path).kind == read(tmp_path / "model").kind == "pir"
    assert read(tmp_path / "model.pdmodel").kind == "legacy"


def test_sniffing_reads_little(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        file.write(PIR.read_bytes()[:200])
        file.truncate(2**40)  # sparse: reading all of it would take too long
    assert sniff(path) == "pir"
