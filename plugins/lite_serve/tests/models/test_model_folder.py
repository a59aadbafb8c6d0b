"""The models in a folder: names, versions, links, and names that no model may have."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from served_models import times

from lite_core.errors import InputError
from lite_serve.models.folder import FoundVersion, find_versions, fingerprint, reason_against

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return times(tmp_path_factory.mktemp("made") / "times.lite")


def put(model: Path, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(model, path)
    return path


def listed(source: Path) -> list[tuple[str, str, str]]:
    """Return name, version and path of each version, the path relative to the source."""
    root = (source if source.is_dir() else source.parent).resolve()
    return [
        (f.model, f.version, f.path.relative_to(root).as_posix() if f.path else "") for f in find_versions(source)[0]
    ]


def only(source: Path) -> FoundVersion:
    (found,) = find_versions(source)[0]
    return found


def test_a_file_is_one_model(model: Path, tmp_path: Path) -> None:
    assert listed(put(model, tmp_path / "shop" / "cats.lite")) == [("cats", "1", "cats.lite")]
    assert listed(put(model, tmp_path / "dogs" / "model.lite")) == [("model", "1", "model.lite")]


@pytest.mark.parametrize(
    "files",
    [
        {"cats.lite": "1"},
        {"cats/model.lite": "1"},
        {"cats/any_name.lite": "1"},
        {"cats/3/model.lite": "3"},
        {"cats/versions/3/model.lite": "3"},
        {"cats/versions/3.lite": "3"},
        {"cats/1/model.lite": "1", "cats/10/model.lite": "10", "cats/9/model.lite": "9"},
    ],
    ids=str,
)
def test_layouts_of_a_repository(model: Path, tmp_path: Path, files: dict[str, str]) -> None:
    for name in files:
        put(model, tmp_path / name)
    (tmp_path / "README.md").write_text("not a model")
    (tmp_path / "pictures").mkdir()
    newest_first = sorted(files, key=lambda name: -int(files[name]))
    assert listed(tmp_path) == [("cats", files[name], name) for name in newest_first]
    assert find_versions(tmp_path)[1] == []


def test_the_folder_of_one_model_is_not_a_folder_of_models(model: Path, tmp_path: Path) -> None:
    put(model, tmp_path / "cats" / "2" / "model.lite")
    put(model, tmp_path / "dogs" / "inference.lite")
    assert listed(tmp_path / "cats") == [("cats", "2", "2/model.lite")]
    assert listed(tmp_path / "dogs") == [("dogs", "1", "inference.lite")]
    assert [name for name, _, _ in listed(tmp_path)] == ["cats", "dogs"]


def test_one_model_can_be_given_a_name(model: Path, tmp_path: Path) -> None:
    put(model, tmp_path / "mnt" / "cats.lite")
    assert find_versions(tmp_path / "mnt", "felines")[0][0].model == "felines"
    assert find_versions(tmp_path / "mnt" / "cats.lite", "felines")[0][0].model == "felines"
    put(model, tmp_path / "mnt" / "dogs.lite")
    with pytest.raises(InputError, match="several models"):
        find_versions(tmp_path / "mnt", "felines")
    with pytest.raises(InputError, match=r"\.\./cats"):
        find_versions(tmp_path / "mnt" / "cats.lite", "../cats")


def test_a_converted_file_is_preferred_to_its_original(model: Path, tmp_path: Path) -> None:
    put(model, tmp_path / "cats.lite")
    put(model, tmp_path / "cats.model")
    found = only(tmp_path)
    assert found.path == tmp_path.resolve() / "cats.lite"
    assert "cats.model" in found.notes[0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["cats.lite", "cats/model.lite"], ["cats.lite", "same name"]),
        (["cats/one.lite", "cats/two.lite"], ["one.lite, two.lite", "model.*"]),
        (["cats/1/model.lite", "cats/versions/1/model.lite"], ["cats/1", "cats/versions/1"]),
        (["cats/1/README"], ["no file"]),
    ],
    ids=str,
)
def test_what_is_ambiguous_or_empty_is_listed_with_the_reason(
    model: Path, tmp_path: Path, files: list[str], words: list[str]
) -> None:
    for name in files:
        put(model, tmp_path / name) if name.endswith(".lite") else (tmp_path / name).parent.mkdir(parents=True)
    found = only(tmp_path)
    assert found.model == "cats"
    assert found.path is None
    for word in words:
        assert word in found.problem


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        find_versions(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            "../cats",
            "..\\cats",
            "cats/../../dogs",
            "/etc/passwd",
            "C:cats",
            "cats\0",
            "cats\n",
            "\x1b[2J",
        ),
        *(
            "con",
            "NUL.lite",
            "com1",
            "LPT9.tar",
            ".hidden",
            "cats.",
            "cats ",
            " cats",
            "a" * 129,
            "a|b",
            "what?",
            "\u202e",
        ),
    ],
    ids=ascii,
)
def test_no_model_has_such_a_name(name: str) -> None:
    assert reason_against(name)


@pytest.mark.parametrize(
    "name", ["cats", "cats-v2_fp16", "resnet50.int8", "Katzen", "猫", "com10", "consul", "a" * 128]
)
def test_models_may_have_such_names(name: str) -> None:
    assert not reason_against(name)


@needs_links
@pytest.mark.parametrize("name", ["cats\n.lite", "con.lite", "what?.lite", "\x1b[2J.lite"], ids=ascii)
def test_files_of_such_names_are_left_out_with_a_note(model: Path, tmp_path: Path, name: str) -> None:
    put(model, tmp_path / name)
    put(model, tmp_path / "dogs.lite")
    found, notes = find_versions(tmp_path)
    assert [each.model for each in found] == ["dogs"]
    assert "not served" in notes[0]
    assert notes[0].isprintable()


@needs_links
def test_links_inside_the_folder_are_followed(model: Path, tmp_path: Path) -> None:
    """Kubernetes mounts configuration so: the names are links into a hidden folder, which is a link itself."""
    put(model, tmp_path / "..2026_01" / "cats" / "model.lite")
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "cats").symlink_to("..data/cats")
    assert [(f.model, bool(f.path)) for f in find_versions(tmp_path)[0]] == [("cats", True)]


@needs_links
@pytest.mark.parametrize(
    "name",
    ["cats.lite", "cats/model.lite", "cats/1", "cats/1/model.lite", "cats/versions", "cats/versions/1.lite"],
)
def test_links_that_lead_out_of_the_folder_are_not_followed(model: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    put(model, outside / "1" / "model.lite")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "dogs").symlink_to(outside)
    link = tmp_path / "inside" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "1" / "model.lite" if name.endswith(".lite") else outside)
    found, notes = find_versions(tmp_path / "inside")
    assert [each.path for each in found] == [None] * len(found)
    assert "'dogs' is not served: it is a link that leads out" in notes[-1]
    assert len([text for text in [*notes, *(each.problem for each in found)] if "leads out" in text]) == 2


@needs_links
def test_weights_beside_a_model_cannot_be_a_link_that_leads_out(model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    put(model, tmp_path / "inside" / "cats" / "model.lite")
    (tmp_path / "inside" / "cats" / "weights.bin").symlink_to(tmp_path / "secret")
    put(model, tmp_path / "inside" / "dogs.lite")
    (tmp_path / "inside" / "dogs.weights").symlink_to(tmp_path / "secret")
    found, _ = find_versions(tmp_path / "inside")
    assert [each.path for each in found] == [None, None]
    assert "weights.bin" in found[0].problem
    assert "dogs.weights" in found[1].problem


@needs_links
def test_a_loop_of_links_is_no_model(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    put(model, tmp_path / "cats.lite")
    assert [each.model for each in find_versions(tmp_path)[0]] == ["cats"]


def test_changes_of_files_are_seen(model: Path, tmp_path: Path) -> None:
    path = put(model, tmp_path / "cats" / "model.lite")
    before = fingerprint(only(tmp_path))
    assert before == fingerprint(only(tmp_path))
    os.utime(path, (1, 1))
    after = fingerprint(only(tmp_path))
    assert before != after
    (path.parent / "weights.bin").write_bytes(b"1")
    assert fingerprint(only(tmp_path)) != after
