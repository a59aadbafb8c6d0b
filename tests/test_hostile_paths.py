"""Paths that are no ordinary files: every reader and command refuses them, and none waits or fills the memory.

What could wait for ever runs in a separate process, which ends at a deadline.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lite_core as lite
import lite_onnx
from lite_core.container.layout import Header
from lite_core.errors import InputError, ModelFormatError
from lite_core.ir import Graph
from lite_tools.writing import write_model
from lite_tools.writing.layout_encoder import encode_header

TINY = Path(__file__).parent / "models/goldens/tiny_conv/legacy"
DEADLINE_SECONDS = 100
SUFFIXES = ("", ".lite", ".onnx", ".pdmodel", ".json", ".nb", "__model__")

#: Loads each path; with "=", as the option of a reader. Prints the errors by path, and the memory that was needed.
LOADING = """
import json, resource, sys
import lite_core as lite
from lite_core.errors import InputError, ModelFormatError

lite.load({tiny!r}, backend="host")
found, before = {{}}, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for text in sys.argv[1:]:
    path, _, params = text.partition("=")
    try:
        lite.load(path, backend="host", reader_options={{"params": params}} if params else None)
    except (InputError, ModelFormatError) as error:
        found[text] = [type(error).__name__, str(error)]
print(json.dumps([found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )


def load_each(folder: Path, *paths: str) -> tuple[dict[str, list[str]], float]:
    """Return the class and the text of the error for each path, and the MiB that loading has needed."""
    done = run(folder, "-c", LOADING.format(tiny=str(TINY)), *paths)
    assert done.returncode == 0, done.stderr
    found, mebibytes = json.loads(done.stdout)
    return found, mebibytes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is limited to about a hundred characters
    pipes = [f"pipe{suffix}" for suffix in SUFFIXES]
    for name in (*pipes, "stem.onnx", "inside/model.onnx", "inside/__model__"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
    (tmp_path / "link.onnx").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        parameters = f"{TINY}=pipe"
        paths = [
            *pipes,
            "stem",
            "inside",
            "link.onnx",
            "socket",
            "/dev/null",
            "/dev/zero",
            parameters,
            f"{TINY}=/dev/zero",
        ]
        found, _ = load_each(tmp_path, *paths)
    assert {path: kind for path, (kind, _) in found.items()} == dict.fromkeys(paths, "ModelFormatError")
    told = {path: text for path, (_, text) in found.items()}
    for path in (*pipes, "stem", "link.onnx", parameters):
        assert "is a named pipe" in told[path]
    assert "is a socket" in told["socket"]
    assert "is a device" in told["/dev/null"]
    assert "without a model" in told["inside"]


def varint(number: int) -> bytes:
    groups = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])


def sparse(path: Path, size: int, beginning: bytes = b"") -> None:
    """Write a file that takes no space on the disk: a beginning, then zeros."""
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)


@pytest.mark.full("reliability")
def test_huge_empty_files_need_no_memory(tmp_path: Path) -> None:
    size, two = 6 << 30, (2 << 30) - 8
    names = [f"zeros{suffix}" for suffix in SUFFIXES]
    for name in names:
        sparse(tmp_path / name, size)
    graph = b"\x08\x08\x3a"  # ir_version 8, and a graph of the given length
    beginnings = {
        "graph.onnx": (two, graph + varint(two - 8)),
        "huge.onnx": (size, graph + varint(size - 9)),
        "program.json": (size, b'{"base_code": {"magic": "pir", "version": 1},'),
        "block.pdmodel": (size, b"\n" + varint(size - 20) + b"\x08\0\x10\0\x22" + varint(size - 40) + b"\n"),
        "table.lite": (size, encode_header(Header(1, 0, size, 128, size - 128))),
    }
    for name, (length, beginning) in beginnings.items():
        sparse(tmp_path / name, length, beginning)
    sparse(tmp_path / "tensors", size)
    paths = [*names, *beginnings, f"{TINY}=tensors"]
    found, mebibytes = load_each(tmp_path, *paths)
    assert {path for path, (kind, _) in found.items() if kind.endswith("Error")} == {*paths}, found
    assert mebibytes < 200


@pytest.mark.full("reliability")
def test_inputs_of_commands(tmp_path: Path) -> None:
    """One process runs all commands in turn, because each takes a second to start."""
    with (tmp_path / "sparse.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (3 << 29,)})
        file.truncate(file.tell() + (6 << 30))
    with (tmp_path / "claims.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 50,)})
    zeros = np.zeros(1 << 20, np.uint8).tobytes()
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        header = {"descr": "|u1", "fortran_order": False, "shape": (400 << 20,)}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(400):
            member.write(zeros)
    (tmp_path / "cut.npz").write_bytes(b"PK" + struct.pack("<I", 0) * 10)
    inputs = ["sparse.npy", "claims.npy", "bomb.npz", "x=bomb.npz", "cut.npz", "a" * 300 + ".npy", "x=/dev/zero", "."]
    if hasattr(os, "mkfifo"):
        for name in ("pipe.npy", "pipe.npz", "pipe.png"):
            os.mkfifo(tmp_path / name)
            inputs.append(name)
    script = f"""
import json, resource, sys
from lite_tools.cli.program import main

codes = {{}}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for given in {inputs!r}:
    try:
        main(["run", {str(TINY)!r}, "-b", "host", "-i", given])
    except SystemExit as end:
        codes[given] = end.code
try:
    main(["run", {str(TINY)!r}, "-b", "host", "--save", "pipe.npy"])
except SystemExit as end:
    codes["save"] = end.code
print(json.dumps([codes, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""
    done = run(tmp_path, "-c", script)
    assert done.returncode == 0, done.stderr
    codes, mebibytes = json.loads(done.stdout.splitlines()[-1])
    assert codes == {**dict.fromkeys(inputs, 2), "save": 2}, done.stderr
    assert "Traceback" not in done.stderr
    assert "is a named pipe" in done.stderr
    assert mebibytes < 300


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_conversions_replace_no_pipe_or_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.lite")
    with pytest.raises(InputError, match="'.*out.lite' is a pipe or a device"):
        lite.convert(TINY, tmp_path / "out.lite", "host", verify=False)
    assert (tmp_path / "out.lite").is_fifo()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("write", [write_model, lambda path, graph: lite_onnx.write(graph, path)], ids=["lite", "onnx"])
def test_writers_replace_no_pipe_or_device(write: Callable[[Path, Graph], None], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out")
    graph = lite.read_model(TINY)
    with pytest.raises(ModelFormatError, match="'.*out' is a named pipe"):
        write(tmp_path / "out", graph)
    assert (tmp_path / "out").is_fifo()
