"""Writers of plugins that fail: the error names the plugin, and errors of others are left as they are."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, ModelFormatError, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, hookimpl
from lite_tools.conversion.other_formats import write, writer_for

Write = Callable[[Graph, Path], Any]


def negation() -> Graph:
    b = GraphBuilder("negation")
    b.output(b.add("Neg", [b.input("x", "float32", [2])]), "y")
    return b.build()


class Format:
    """A format whose writer is replaced."""

    name, suffixes = "ink", (".ink",)

    def __init__(self, write: Write) -> None:
        self.write = write

    def sniff(self, path: Path) -> bool:
        return False

    def read(self, path: Path) -> Graph:
        return negation()


def plugins_with_writer(function: Write) -> PluginManager:
    module = ModuleType("a_plugin")
    vars(module).update(LITE_API_VERSION=1, lite_formats=hookimpl(lambda: [Format(function)]))
    entry: Any = SimpleNamespace(
        name="ink",
        value="a_plugin",
        dist=SimpleNamespace(name="lite-ink", version="1.0", requires=None),
        load=lambda: module,
    )
    return PluginManager(lambda: [entry])


def written(function: Write, path: Path) -> None:
    plugins = plugins_with_writer(function)
    writer = writer_for(path, plugins=plugins)
    assert writer is not None
    write(writer, negation(), path, plugins=plugins)


def raises(error: BaseException) -> Write:
    def function(graph: Graph, path: Path) -> None:
        raise error

    return function


def test_file_of_a_plugin_is_written(tmp_path: Path) -> None:
    written(lambda graph, path: path.write_text(graph.name), tmp_path / "model.ink")
    assert (tmp_path / "model.ink").read_text() == "negation"


@pytest.mark.parametrize(
    ("error", "shown"),
    [(KeyError("oops"), "KeyError: 'oops'"), (SystemExit(3), "SystemExit: 3"), (StopIteration(), "")],
)
def test_writer_that_fails_is_named_with_its_plugin(tmp_path: Path, error: BaseException, shown: str) -> None:
    with pytest.raises(ModelFormatError) as caught:
        written(raises(error), tmp_path / "model.ink")
    assert f"the writer 'ink' of plugin 'ink' (lite-ink 1.0) failed with {shown}" in str(caught.value)
    assert caught.value.__cause__ is error


def test_writer_that_writes_no_file_is_named_with_its_plugin(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"the writer 'ink' of plugin 'ink' \(lite-ink 1\.0\) wrote no file"):
        written(lambda graph, path: None, tmp_path / "model.ink")


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedOperatorError("graph 'negation'", []),
        InputError("the name is too long"),
        OSError(errno.ENOSPC, "No space left on device"),
        MemoryError(),
        KeyboardInterrupt(),
    ],
)
def test_error_that_is_not_the_plugins_is_left_as_it_is(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        written(raises(error), tmp_path / "model.ink")
    assert caught.value is error


def test_format_without_a_writer_is_refused(tmp_path: Path) -> None:
    plugins = plugins_with_writer(lambda graph, path: None)
    (_, format) = plugins.ask("lite_formats")[0]
    del format.write
    with pytest.raises(InputError, match="the format 'ink' can be read but not written"):
        writer_for(tmp_path / "model.ink", plugins=plugins)


def cut_short(graph: Graph, path: Path) -> None:
    path.with_name("weights.bin").write_text("half")
    path.write_text("half")
    raise ValueError("oops")


@pytest.mark.parametrize("function", [cut_short, raises(PermissionError(errno.EACCES, "the dongle is missing"))])
def test_writer_that_fails_leaves_the_file_that_was_there(tmp_path: Path, function: Write) -> None:
    (tmp_path / "model.ink").write_text("good")
    with pytest.raises(ModelFormatError, match=r"the writer 'ink' of plugin 'ink' \(lite-ink 1\.0\) failed") as caught:
        written(function, tmp_path / "model.ink")
    assert caught.value.source == "lite-ink 1.0"
    assert [each.name for each in tmp_path.iterdir()] == ["model.ink"]
    assert (tmp_path / "model.ink").read_text() == "good"


def test_error_of_a_writer_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.ink"
    with pytest.raises(ModelFormatError) as caught:
        written(lambda graph, made: (made / "part").write_text("the folder is missing"), path)
    assert str(path / "part") in str(caught.value)


def test_set_of_files_replaces_the_one_that_was_there(tmp_path: Path) -> None:
    def function(graph: Graph, path: Path) -> None:
        path.write_text("new")
        path.with_name("weights.bin").write_text("new")
        (path.parent / "parts").mkdir()
        (path.parent / "parts" / "0").write_text("new")

    (tmp_path / "model.ink").write_text("old")
    (tmp_path / "weights.bin").write_text("old")
    (tmp_path / "other.txt").write_text("kept")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1").write_text("old")
    written(function, tmp_path / "model.ink")
    found = {str(f.relative_to(tmp_path)): f.read_text() for f in tmp_path.rglob("*") if f.is_file()}
    part = str(Path("parts", "0"))
    assert found == {"model.ink": "new", "weights.bin": "new", part: "new", "other.txt": "kept"}
