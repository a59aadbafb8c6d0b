"""Array files of commands: what a header claims is compared with the file before memory is allocated."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core.ir import DType, SymbolicDim, TensorType
from lite_tools.commands.array_files import read_array_file, read_arrays

OPEN = TensorType(DType.FLOAT32, (SymbolicDim.named("n"),))
X = np.arange(6, dtype=np.float32)


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (0, 3), ()])
def test_arrays_are_read(shape: tuple[int, ...], order: Any, tmp_path: Path) -> None:
    array = np.asarray(np.resize(X, shape), order=order)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array, y=X)
    np.savez_compressed(tmp_path / "small.npz", x=array)
    type_ = TensorType.of_array(array)
    for name in ("x.npy", "x.npz", "small.npz"):
        found = read_array_file(tmp_path / name, "x", type_)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, array)
    found = read_arrays(tmp_path / "x.npz", {"x": type_, "y": OPEN, "z": OPEN}, every=True)
    assert sorted(found) == ["x", "y"]


@pytest.mark.parametrize("claimed", [(1 << 50,), (1 << 62, 1 << 62), (5,), (7,)])
def test_claims_that_the_file_does_not_hold(claimed: tuple[int, ...], tmp_path: Path) -> None:
    content = header(claimed) + X.tobytes()
    (tmp_path / "x.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", content)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ValueError, match="24 follow the header"):
            read_array_file(tmp_path / name, "x", OPEN)


def test_archives_that_expand_to_more_than_they_hold(tmp_path: Path) -> None:
    """Compressing the zeros for real would take seconds: the archive's list is changed instead."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header((1 << 28,)) + bytes(1000))
        archive.filelist[0].file_size = 1 << 30
    with pytest.raises(ValueError, match=f"to {1 << 30} bytes"):
        read_array_file(tmp_path / "x.npz", "x", OPEN)


def test_large_arrays_that_do_not_fit_are_not_read(tmp_path: Path) -> None:
    size = 1 << 30
    with (tmp_path / "x.npy").open("wb") as file:  # takes no space on the disk
        file.write(header((size // 4,)))
        file.truncate(file.tell() + size)
    with pytest.raises(ValueError, match="the input is float32"):
        read_array_file(tmp_path / "x.npy", "x", TensorType(DType.FLOAT32, (3,)))
    mapped = read_array_file(tmp_path / "x.npy", "x", OPEN)
    assert (mapped.shape, mapped[-1]) == ((size // 4,), 0)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickles"):
        read_array_file(tmp_path / "x.npy", "x", OPEN)


def test_names_that_are_not_in_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    with pytest.raises(ValueError, match="contains x; expected y"):
        read_array_file(tmp_path / "x.npz", "y", OPEN)
    with pytest.raises(ValueError, match="contains x; expected y"):
        read_arrays(tmp_path / "x.npz", {"y": OPEN}, every=True)
