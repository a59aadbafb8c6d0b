"""Parameter files: combined, separate, all element types, and the errors for damaged ones."""

from __future__ import annotations

import math
import shutil
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lite_core.errors import InputError, ModelFormatError
from lite_paddle.reader import read
from lite_paddle.reader.parameters import ParameterFile, load_combined, load_separate, separate_file
from lite_paddle.source import SourceType

FIXTURE = Path(__file__).parent / "fixtures" / "legacy_2.6" / "classifier"
NUMBERS = {
    "bool": 0,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "float32": 5,
    "float64": 6,
    "uint8": 20,
}
NUMBERS |= {"int8": 21, "bfloat16": 22}


def tensor_bytes(array: np.ndarray[Any, Any], lod: bytes = bytes(8)) -> bytes:
    """Return one tensor in the format of Paddle; only for dimensions below 128."""
    description = bytes([8, NUMBERS[array.dtype.name]]) + b"".join(bytes([16, dim]) for dim in array.shape)
    header = bytes(4) + lod + bytes(4) + struct.pack("<i", len(description))
    return header + description + array.tobytes()


def declare(array: np.ndarray[Any, Any]) -> SourceType:
    return SourceType(array.dtype.name, array.shape)


def write(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_every_element_type(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    numpy_dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    array = np.arange(math.prod(shape)).reshape(shape).astype(numpy_dtype)
    path = write(tmp_path / "p", b"", tensor_bytes(array))
    loaded = load_combined(path, {"w": declare(array)}, [["w"]])["w"]
    assert loaded.dtype == array.dtype
    assert loaded.shape == shape
    assert loaded.tobytes() == array.tobytes()
    assert not loaded.flags.writeable


def test_lod_levels_are_skipped(tmp_path: Path) -> None:
    array = np.float32([1, 2])
    lod = struct.pack("<QQ", 1, 16) + bytes(16)
    path = write(tmp_path / "p", tensor_bytes(array, lod), tensor_bytes(array))
    assert [record.shape for record in ParameterFile(path).read_all()] == [(2,), (2,)]


def test_first_fitting_order_is_used(tmp_path: Path) -> None:
    a, b = np.float32([1, 2]), np.float32([[3]])
    path = write(tmp_path / "p", tensor_bytes(b), tensor_bytes(a))
    loaded = load_combined(path, {"a": declare(a), "b": declare(b)}, [["a", "b"], ["a"], ["b", "a"]])
    assert loaded["a"].tolist() == [1, 2]
    assert loaded["b"].tolist() == [[3]]


def test_half_precision_saved_for_a_float32_program(tmp_path: Path) -> None:
    half = np.float16([1, 2])
    path = write(tmp_path / "p", tensor_bytes(half))
    loaded = load_combined(path, {"w": SourceType("float32", (2,))}, [["w"]])
    assert loaded["w"].dtype == np.float16
    with pytest.raises(ModelFormatError, match=r"'w' is int32\[2\] in the program.*float16\[2\]"):
        load_combined(path, {"w": SourceType("int32", (2,))}, [["w"]])


def test_mismatch_names_the_parameter(tmp_path: Path) -> None:
    path = write(tmp_path / "p", tensor_bytes(np.float32([1, 2])))
    with pytest.raises(ModelFormatError, match=r"'w' is float32\[3\] in the program, but tensor 0 .*float32\[2\]"):
        load_combined(path, {"w": SourceType("float32", (3,))}, [["w"]])
    with pytest.raises(ModelFormatError, match="2 parameters, the file 1 tensors"):
        load_combined(path, dict.fromkeys("ab", SourceType("float32", (2,))), [["a", "b"]])


GOOD = tensor_bytes(np.float32([1, 2]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD + b"\0", r"1 bytes are left over after the last tensor \(1 tensors, 33 bytes\)"),
        (GOOD + bytes(30), "no tensor at byte 32 of 62: tensor version"),
        (GOOD[:-1], "needs 8 bytes, 7 are left"),
        (GOOD[:10], "ends inside the tensor's header"),
        (b"\x01" + GOOD[1:], "starts with 0x00000001"),
        (b"\x80\x04" + GOOD, "Python pickle.*never loaded"),
        (GOOD[:4] + b"\xff" * 8 + GOOD[12:], "LoD levels do not fit"),
        (GOOD[:16] + struct.pack("<i", 2**31 - 1) + GOOD[20:], "description of 2147483647 bytes"),
        (GOOD[:16] + struct.pack("<i", -1) + GOOD[20:], "description of -1 bytes"),
        (
            bytes(16) + struct.pack("<i", 12) + b"\x08\x05\x10" + b"\xff" * 8 + b"\x7f",
            "not a TensorDesc|impossible",
        ),
        (
            bytes(16) + struct.pack("<i", 12) + b"\x08\x05" + b"\x10\xff\xff\xff\x7f" * 2,
            "needs .* bytes, 0 are left",
        ),
        (bytes(16) + struct.pack("<i", 4) + b"\x08\x07\x10\x02", "7 is not the number of an element type"),
        (bytes(16) + struct.pack("<i", 2) + b"\x10\x02", "no element type"),
    ],
)
def test_damaged_files(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        ParameterFile(write(tmp_path / "p", data)).read_all()


def copy_program(target: Path) -> Path:
    """Copy the fixture's program, without parameters, under the name that Paddle 1.x uses."""
    return Path(shutil.copy(FIXTURE / "model.pdmodel", target / "__model__"))


@pytest.mark.parametrize("name", ["__model__.pdiparams", "__params__", "params", "weights", "other.pdiparams"])
def test_combined_file_under_its_usual_names(tmp_path: Path, name: str) -> None:
    copy_program(tmp_path)
    shutil.copy(FIXTURE / "model.pdiparams", tmp_path / name)
    assert len(read(tmp_path).parameters) == 8


def test_separate_files(tmp_path: Path) -> None:
    expected = read(FIXTURE).parameters
    copy_program(tmp_path)
    for name, array in expected.items():
        write(tmp_path / name, tensor_bytes(array))
    loaded = read(tmp_path).parameters
    assert {name: array.tobytes() for name, array in loaded.items()} == {n: a.tobytes() for n, a in expected.items()}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert len(read(copy_program(elsewhere), params=tmp_path).parameters) == 8


def test_explicit_file(tmp_path: Path) -> None:
    program = copy_program(tmp_path)
    assert len(read(program, params=FIXTURE / "model.pdiparams").parameters) == 8
    with pytest.raises(InputError, match="nowhere does not exist"):
        read(program, params=tmp_path / "nowhere")


def test_missing_file_says_what_was_tried(tmp_path: Path) -> None:
    copy_program(tmp_path)
    with pytest.raises(ModelFormatError, match=r"__params__, params.*0 of 8; the first is 'batch_norm2d_0.b_0'"):
        read(tmp_path)


def test_missing_separate_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a", GOOD)
    types = dict.fromkeys(["a", "b/c"], SourceType("float32", (2,)))
    with pytest.raises(ModelFormatError, match=r"1 of 2 parameters, among them \['b/c'\]"):
        load_separate(tmp_path, types)
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "c", GOOD)
    assert load_separate(tmp_path, types)["b/c"].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_names_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFormatError, match="not the name of a file inside"):
        separate_file(tmp_path, name)
