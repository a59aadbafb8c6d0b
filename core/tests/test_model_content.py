"""Models given as content: bytes, other buffers, open files; and the messages for what cannot be opened so."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, ModelFormatError
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, plugins_with
from lite_core.plugins.hooks import hookimpl
from lite_core.session import load
from lite_tools.writing import write_model

X = np.ones((2, 3), np.float32)


def network() -> Graph:
    b = GraphBuilder("net")
    b.output(b.add("MatMul", [b.input("x", "float32", ["n", 3]), b.constant(np.ones((3, 2), np.float32), "w")]), "y")
    return b.build()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("content") / "net.lite"
    write_model(path, network())
    return path.read_bytes()


class TwoFiles:
    """A format whose models need a second file beside the first."""

    name, suffixes = "two", (".two",)

    def sniff(self, path: Path) -> bool:
        return path.read_bytes().startswith(b"two")

    def read(self, path: Path, *, params: str | None = None) -> Graph:
        weights = Path(params) if params else path.with_name("weights")
        if not weights.exists():
            raise ModelFormatError(f"model {str(path)!r}: there is no {str(weights)!r}")
        return network()


def reading_two_files() -> PluginManager:
    plugins = plugins_with()
    module = type(os)("two")
    module.__dict__.update(LITE_API_VERSION=1, lite_formats=hookimpl(lambda: [TwoFiles()]))
    plugins.register(module, "two")
    return plugins


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO, lambda b: np.frombuffer(b, np.uint8)])
def test_a_model_is_loaded_from_its_content(kind: Any, content: bytes) -> None:
    with load(kind(content), plugins=plugins_with()) as session:
        assert session.run({"x": X})["y"].tolist() == [[3, 3], [3, 3]]
        assert session.file is not None
        assert str(session.file.path) == f"of {len(content)} bytes"


def test_an_open_file_is_read_from_where_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(b"before" + content)
    with path.open("rb") as file:
        file.seek(6)
        assert load(file, plugins=plugins_with()).run({"x": X})["y"].shape == (2, 2)
    with path.open(encoding="latin-1") as text, pytest.raises(InputError, match="TextIOWrapper"):
        load(text, plugins=plugins_with())  # type: ignore[arg-type]


def test_no_temporary_file_is_left(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = load(content, plugins=plugins_with())
    with pytest.raises(ModelFormatError):
        load(content[:-9], plugins=plugins_with())
    assert not list(tmp_path.iterdir())
    assert session.run({"x": X})["y"].tolist() == [[3, 3], [3, 3]]


def test_messages_name_the_content_and_no_temporary_file(content: bytes) -> None:
    for given, why in ((b"", "an empty file"), (b"hello", "begins with b'hello'"), (content[:-9], "cut off")):
        with pytest.raises(ModelFormatError, match=f"model of {len(given)} bytes.*{why}") as caught:
            load(given, plugins=plugins_with())
        assert tempfile.gettempdir() not in str(caught.value)
        assert "several files" not in str(caught.value)


def test_a_model_of_several_files_needs_a_path_or_the_paths_of_the_others(tmp_path: Path) -> None:
    plugins = reading_two_files()
    with pytest.raises(ModelFormatError, match=r"there is no 'weights'.*\(load a model of several files by its path\)"):
        load(b"two", plugins=plugins)
    (tmp_path / "w").touch()
    session = load(b"two", plugins=plugins, reader_options={"params": str(tmp_path / "w")})
    assert session.run({"x": X})["y"].tolist() == [[3, 3], [3, 3]]
