"""``lite cache``: what it shows, what it removes, and a cache that it fills for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lite_core.builder import GraphBuilder
from lite_tools.cli import lite
from lite_tools.writing import write_model


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lite, ["cache", *arguments])


def shown(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.output)
    return data


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with entries of two kinds, and files that are none."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    for file in ("kernels/a.kernel", "kernels/b.kernel", "kernels/notes.txt", "opencl/c.bin", "other/d.bin"):
        path = tmp_path / "cache" / file
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(bytes(1000))
    (tmp_path / "cache" / "kernels" / "left.lock").touch()
    return tmp_path / "cache"


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if not path.is_dir())


def test_folders_are_shown(root: Path) -> None:
    data = shown()
    assert data["folder"] == str(root)
    counted = {row["kind"]: (row["entries"], row["bytes"], row["unsafe"]) for row in data["kinds"]}
    assert counted["kernels"] == (2, 2000, "")
    assert counted["opencl"] == (1, 1000, "")
    assert next(row["folder"] for row in data["kinds"] if row["kind"] == "kernels") == str(root / "kernels")
    output = run().output
    assert f"{root}: 3 entries, 3000 bytes" in output
    assert "lite-cpu" in output
    assert "numba" not in output  # it has no entries


@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        ((), ["d.bin", "notes.txt"]),
        (("kernels",), ["c.bin", "d.bin", "notes.txt"]),
        (("kernels", "opencl"), ["d.bin", "notes.txt"]),
    ],
)
def test_only_entries_are_removed(root: Path, kinds: tuple[str, ...], left: list[str]) -> None:
    assert shown("clear", *kinds, "--yes")["removed"][0]["entries"] == 2
    assert files(root) == left


def test_folders_with_entries_are_removed_and_counted(root: Path) -> None:
    data = root / "onnx-node-data" / "node-data-1234" / "test_abs"
    data.mkdir(mode=0o700, parents=True)
    (data / "model.onnx").write_bytes(bytes(500))
    (row,) = shown("clear", "onnx-node-data", "--yes")["removed"]
    assert (row["entries"], row["bytes"]) == (1, 500)
    assert [*(root / "onnx-node-data").iterdir()] == []


@pytest.mark.parametrize("arguments", [("clear",), ("clear", "kernels", "--json")])
def test_nothing_is_removed_without_a_question_or_yes(root: Path, arguments: tuple[str, ...]) -> None:
    before = files(root)
    result = run(*arguments)
    assert result.exit_code == 2
    assert "--yes" in result.output
    assert files(root) == before


def test_links_at_the_places_of_entries_are_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"victim")
    (root / "kernels" / "z.kernel").symlink_to(tmp_path / "victim")
    assert run("clear", "-y").exit_code == 0
    assert (tmp_path / "victim").exists()
    assert files(root) == ["d.bin", "notes.txt"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
def test_folder_that_others_can_change_is_shown_and_neither_cleared_nor_filled(root: Path, relu_model: Path) -> None:
    root.chmod(0o777)
    before = files(root)
    assert all(str(root) in row["unsafe"] for row in shown()["kinds"])
    for arguments in (["clear", "--yes"], ["fill", str(relu_model)]):
        result = run(*arguments)
        assert result.exit_code != 0
        assert f"chmod go-w {root}" in str(result.output)
    assert files(root) == before


def test_cache_that_is_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    for arguments in ([], ["clear"], ["fill", "model"]):
        assert run(*arguments).exit_code == 3


def test_a_model_without_kernels_fills_nothing(root: Path, relu_model: Path) -> None:
    before = files(root / "kernels")
    assert shown("fill", str(relu_model), "--backend", "host")["models"] == [
        {"model": str(relu_model), "new_entries": 0}
    ]
    assert files(root / "kernels") == before
    assert run("fill", str(relu_model), "-s", "3x2").exit_code == 2


def test_error_for_open_sizes_names_the_option_of_this_command(root: Path, tmp_path: Path) -> None:
    b = GraphBuilder("open")
    b.output(b.add("Relu", [b.input("x", "float32", ["a", "b"])]))
    write_model(tmp_path / "open.lite", b.build())
    told = run("fill", str(tmp_path / "open.lite"), "--backend", "host").output
    assert "give its shape, for example --shape x=1x16" in told
    assert "--input" not in told
