"""Arguments of the wrong kind: each is an InputError that names the argument, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, ModelFormatError
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.session import Session, load
from lite_tools.writing import write_model

X = np.ones(2, np.float32)


def small_graph(size: int | str = 2) -> Graph:
    b = GraphBuilder("small")
    b.output(b.add("Relu", [b.input("image", "float32", (size,))]), "y")
    return b.build()


@pytest.fixture
def session() -> Session:
    return load(small_graph(), backend="host")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend", 3),
        ("backend", []),
        ("backend", b"host"),
        ("threads", "2"),
        ("threads", 2.0),
        ("threads", True),
        ("threads", 0),
        ("plans", None),
        ("plans", True),
        ("precision", 16),
        ("exact", "no"),
        ("exact", 1),
        ("tune", None),
        ("optimize", "off"),
        ("fallback", None),
        ("placement", "host"),
        ("placement", ["host"]),
        ("placement", 3),
        ("placement", {3: "host"}),
        ("placement", {"relu": 3}),
        ("plugins", "x86"),
        ("backend_options", "x86"),
        ("backend_options", {"host": 3}),
        ("reader_options", 3),
        ("reader_options", "params"),
        ("reader_options", {3: 4}),
    ],
)
def test_load(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name} must be .* is {type(value).__name__}"):
        load(small_graph(), **{name: value})


@pytest.mark.parametrize("given", [3, None, ["model"], "", "a\0b"])
def test_paths(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "model.lite", small_graph())
    monkeypatch.chdir(tmp_path)  # "" does not stand for the model in the working folder
    for read in (load, read_model):
        with pytest.raises(InputError, match=rf"^model must be the path .* is {type(given).__name__}"):
            read(given)


def test_bytes_are_no_path() -> None:
    with pytest.raises(InputError, match="^model must be the path .* is bytes"):
        read_model(b"model")  # type: ignore[arg-type]
    with pytest.raises(ModelFormatError, match="^model of 5 bytes is of an unknown format: it begins with b'model'"):
        load(b"model")


def test_objects_with_a_wrong_fspath_are_no_paths() -> None:
    class Strange:
        def __fspath__(self) -> int:
            return 3

    with pytest.raises(InputError, match="is Strange"):
        load(Strange())  # type: ignore[arg-type]


def test_names_that_are_too_long_are_missing_files() -> None:
    for name in ("a" * 5000, "/".join(["a" * 200] * 50), "\ud800"):
        with pytest.raises(InputError, match="no such file") as caught:
            load(name)
        assert len(str(caught.value)) < 1000


def test_a_folder_stays_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFormatError, match="a folder without a model"):
        load(".")


def test_read_model_checks_its_plugins() -> None:
    with pytest.raises(InputError, match="plugins must be a PluginManager, is int 3"):
        read_model(".", plugins=3)  # type: ignore[arg-type]


def test_sessions_check_the_plugins_of_graphs() -> None:
    with pytest.raises(InputError, match="plugins must be a PluginManager, is int 3"):
        load(small_graph(), plugins=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda s: s.run(3), "inputs"),
        (lambda s: s.run([X]), "inputs"),
        (lambda s: s.run({"image": X}, out=3), "out"),
        (lambda s: s.run({"image": X}, out=[X]), "out"),
        (lambda s: s.run({"image": X}, out=X), "out"),
        (lambda s: s.run({"image": X}, out={"y": [1.0, 2.0]}), r"out\['y'\]"),
        (lambda s: s.run({"image": X}, profile="yes"), "profile"),
        (lambda s: s.run({"image": X}, profile=3), "profile"),
        (lambda s: s.run({"image": X}, timeout="1"), "timeout"),
        (lambda s: s.run({"image": X}, timeout=True), "timeout"),
        (lambda s: s.run({"image": X}, timeout=0), "timeout"),
        (lambda s: s.run({"image": X}, timeout=-1.5), "timeout"),
        (lambda s: s.run({"image": X}, timeout=float("nan")), "timeout"),
        (lambda s: s.prepare(3), "shapes"),
        (lambda s: s.prepare([2]), "shapes"),
        (lambda s: s.plan("2"), "shapes"),
        (lambda s: s.bind(3), "inputs"),
        (lambda s: s.bind(None), "inputs"),
        (lambda s: s.bind("image"), "inputs"),
        (lambda s: s.bind({"image": X}, 3), "outputs"),
        (lambda s: s.bind({"image": X}, [X]), "outputs"),
        (lambda s: s.bind({"image": X}, X), "outputs"),
    ],
)
def test_methods(session: Session, call: Callable[[Session], object], name: str) -> None:
    with pytest.raises(InputError, match=f"^{name} must be "):
        call(session)


@pytest.mark.parametrize("shape", [3, "2", None, [2.0], [True], [-1], {2}])
def test_shapes_of_the_wrong_kind(shape: Any) -> None:
    session = load(small_graph("n"), backend="host")
    with pytest.raises(InputError, match="'image' must have shape"):
        session.prepare({"image": shape})


@pytest.mark.parametrize("out", [None, {"y": np.zeros(2, np.float32)}])
def test_an_input_cannot_be_given_twice(session: Session, out: Any) -> None:
    with pytest.raises(InputError, match="'image' is given twice"):
        session.run({"image": X}, image=X + 1, out=out)
    assert session.run({"image": X})["y"].tolist() == [1, 1]
