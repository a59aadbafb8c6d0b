"""The models and versions in a file or folder.

================================  ==========================================================
``resnet.onnx``                   version 1 of the model ``resnet``
``resnet/model.onnx``             the same: in a folder, ``model``, ``inference`` and ``__model__``
                                  are named after it, and other files if they are its only model
``resnet/3/model.onnx``           version 3 of the model ``resnet``, the layout of Triton
``resnet/versions/3/model.onnx``  the same
``resnet/versions/3.onnx``        the same
================================  ==========================================================

Names are found by listing the folder, and looked up in that list: a name from a request never becomes part of a path.
Links are followed only to what is inside the folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lite_core.errors import InputError, LiteError
from lite_core.formats import find_model

__all__ = ["FoundVersion", "find_versions", "fingerprint", "reason_against"]

#: Stems of files that are named after their folder, in every format.
_GENERIC = frozenset({"__model__", "inference", "model"})
#: Files of these suffixes are models: a damaged one is listed with the reason, and not left out.
_SUFFIXES = frozenset({".lite", ".nb", ".onnx", ".pdmodel"})
_VERSION = re.compile(r"[1-9][0-9]{0,17}\Z")
_LONGEST_NAME = 128
_FORBIDDEN = frozenset('/\\:*?"<>|')
_RESERVED = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\.|\Z)", re.IGNORECASE)
_NO_MODEL = "no file in its folder is a model that can be read"
#: What a folder of a model may contain, at most: a wrong path, such as ``/``, is an error and no long search.
_MOST_ENTRIES = 10_000


@dataclass(slots=True)
class FoundVersion:
    """A version of a model in the folder.

    Attributes:
        model: the model's name.
        version: the version, a whole number as text.
        path: what to load; None if it cannot be.
        problem: the reason if it cannot be loaded.
        is_numbered: True if its number is in a name of the folder.
        files: the files and folders that belong to it.
        notes: what a user should know of how it was found.
    """

    model: str
    version: str
    path: Path | None = None
    problem: str = ""
    is_numbered: bool = False
    files: tuple[Path, ...] = ()
    notes: list[str] = field(default_factory=list)


def find_versions(source: Path, name: str = "") -> tuple[list[FoundVersion], list[str]]:
    """Return the versions of all models, newest first for each model, and a note for each name that is left out.

    Args:
        source: a file of a model, the folder of a model, or a folder of models.
        name: the name of the model, if the source is one; by default that of the file or folder.

    Raises:
        InputError: there is no such file or folder, it cannot be listed, or several models cannot have the name.
    """
    if name and (problem := reason_against(name)):
        raise InputError(f"{name!r} cannot be the name of a model: {problem}")
    try:
        root = source.resolve(strict=True)
        if not root.is_dir():
            # Named as it was given, not as a link's target is.
            return [_file_version(name or source.stem, "1", root, root.parent)], []
        if own := _own_name(root):
            return _versions_in(name or own, root, root), []
        found, notes = _models_in(root)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise InputError(f"{str(source)!r} cannot be served: {error}") from None
    if name and len({each.model for each in found}) > 1:
        raise InputError(f"{str(source)!r} holds several models, which cannot all be named {name!r}")
    for each in found if name else ():
        each.model = name
    return found, notes


def fingerprint(found: FoundVersion) -> tuple[tuple[str, int, int, int], ...]:
    """Return what changes if a file of the version does: path, size, time and number of each."""
    facts = []
    for path in found.files:
        try:
            state = path.stat()
        except OSError:
            continue
        facts.append((str(path), state.st_size, state.st_mtime_ns, state.st_ino))
    return tuple(sorted(facts))


def reason_against(name: str) -> str:
    """Return why a name cannot be that of a model on every system and in every address; empty if it can."""
    if not name or len(name) > _LONGEST_NAME:
        return f"names have 1 to {_LONGEST_NAME} characters"
    if not name.isprintable() or not _FORBIDDEN.isdisjoint(name):
        return "it contains a character that file names of some systems, or addresses, cannot contain"
    if name[0] in ". " or name[-1] in ". ":
        return "it begins or ends with a dot or a space"
    return "Windows reserves it" if _RESERVED.match(name) else ""


def _models_in(root: Path) -> tuple[list[FoundVersion], list[str]]:
    notes: list[str] = []
    files: dict[str, list[Path]] = {}
    folders: dict[str, Path] = {}
    for path in _entries(root):
        if path.name.startswith("."):
            continue
        name = path.name if path.is_dir() else path.stem
        if not _is_inside(path, root):
            notes.append(f"{path.name!r} is not served: it is a link that leads out of the folder, or nowhere")
        elif path.is_dir() or _is_model(path):
            if problem := reason_against(name):
                notes.append(f"{name!r} is not served: {problem}")
            elif path.is_dir():
                folders[name] = path
            else:
                files.setdefault(name, []).append(path)
    found: list[FoundVersion] = []
    for name in sorted({*files, *folders}):
        if name in files and name in folders:
            listed = ", ".join(path.name for path in files[name])
            found.append(FoundVersion(name, "1", problem=f"the folder {name} and {listed} have the same name"))
        elif name in files:
            found.append(_chosen_version(name, "1", files[name], root))
        else:
            try:
                versions = _versions_in(name, folders[name], root)
            except OSError as error:
                versions = [FoundVersion(name, "1", problem=str(error))]
            # A folder without any model, such as one of pictures, is none.
            found += versions if versions[0].is_numbered or versions[0].problem != _NO_MODEL else []
    return found, notes


def _own_name(folder: Path) -> str:
    """Return the folder's name if the folder is a model, and not a folder of models; else an empty text."""
    paths = [path for path in _entries(folder) if not path.name.startswith(".")]
    is_model = any(
        (path.is_dir() and (path.name == "versions" or _VERSION.match(path.name)))
        or (path.is_file() and path.stem in _GENERIC and _is_model(path))
        for path in paths
    )
    return (folder.name or "model") if is_model else ""


def _versions_in(name: str, folder: Path, root: Path) -> list[FoundVersion]:
    """Return the versions of a model's folder, newest first; a version without a path and problem if there is none."""
    by_version: dict[str, list[Path]] = {}
    for inner in (folder, folder / "versions"):
        for path in _entries(inner) if inner.is_dir() and _is_inside(inner, root) else ():
            number = path.name if path.is_dir() else path.stem
            if _VERSION.match(number) and (path.is_dir() or (_is_inside(path, root) and _is_model(path))):
                by_version.setdefault(number, []).append(path)
    if not by_version:
        return [_folder_version(name, "1", folder, root)]
    numbered = sorted(by_version, key=int, reverse=True)
    versions = [_chosen_version(name, version, by_version[version], root) for version in numbered]
    for each in versions:
        each.is_numbered = True
    return versions


def _chosen_version(name: str, version: str, paths: list[Path], root: Path) -> FoundVersion:
    """Return a version that has one path, or several formats of the same file."""
    folders = [path for path in paths if path.is_dir()]
    if len(paths) == 1 and folders:
        return _folder_version(name, version, paths[0], root)
    if folders:
        listed = ", ".join(sorted(str(path.relative_to(root)) for path in paths))
        return FoundVersion(name, version, problem=f"several are version {version}: {listed}")
    chosen = _preferred(paths)
    if chosen is None:
        listed = ", ".join(sorted(path.name for path in paths))
        return FoundVersion(name, version, problem=f"several files are version {version}: {listed}; leave one")
    found = _file_version(name, version, chosen, root)
    if len(paths) > 1:
        found.notes.append(f"of {', '.join(sorted(path.name for path in paths))}, {chosen.name} is served")
    return found


def _folder_version(name: str, version: str, folder: Path, root: Path) -> FoundVersion:
    """Return the version whose files are in a folder."""
    if leading_out := _leads_out(folder, root):
        return FoundVersion(name, version, problem=f"{leading_out} is a link that leads out of the folder")
    files = [path for path in _entries(folder) if path.is_file() and not path.name.startswith(".")]
    models = [path for path in files if _is_model(path)]
    models = [path for path in models if path.stem in _GENERIC] or models
    chosen = _preferred(models)
    if chosen is None and models:
        listed = ", ".join(path.name for path in models)
        return FoundVersion(
            name, version, problem=f"several files are models: {listed}; leave one, or name one model.*"
        )
    if chosen is None and not _is_model(folder):
        return FoundVersion(name, version, problem=_NO_MODEL)
    # A model may keep its weights in files of any name. Without a model file, the folder is one, as of an old Paddle.
    everything = tuple(path for path in _walk(folder) if path.is_file())
    found = FoundVersion(name, version, chosen or folder, files=everything)
    if chosen and len(models) > 1:
        found.notes.append(f"of {', '.join(path.name for path in models)}, {chosen.name} is served")
    return found


def _file_version(name: str, version: str, path: Path, root: Path) -> FoundVersion:
    """Return the version in a file. Files beside it whose names begin alike belong to it, such as its weights."""
    if not _is_inside(path, root):
        return FoundVersion(name, version, problem=f"{path.name} is a link that leads out of the folder")
    beside = [
        other
        for other in _entries(path.parent)
        if other.is_file() and other.name.split(".")[0] == path.name.split(".")[0]
    ]
    for other in beside:
        if not _is_inside(other, root):
            return FoundVersion(name, version, problem=f"{other.name} is a link that leads out of the folder")
    return FoundVersion(name, version, path, files=tuple(beside))


def _preferred(paths: list[Path]) -> Path | None:
    """Return the only file, or the .lite file if all have the same stem."""
    converted = [path for path in paths if path.suffix == ".lite"]
    if len(paths) > 1 and len({path.stem for path in paths}) == 1 and len(converted) == 1:
        return converted[0]
    return paths[0] if len(paths) == 1 else None


def _is_model(path: Path) -> bool:
    """Return True if an installed reader recognises a file or folder, or if its name says that it is a model."""
    if path.suffix in _SUFFIXES and path.is_file():
        return True
    try:
        find_model(path)
    except (LiteError, OSError):
        return False
    return True


def _is_inside(path: Path, root: Path) -> bool:
    """Return True if a path, with all links followed, is inside the folder."""
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def _leads_out(folder: Path, root: Path) -> str:
    """Return the name of a link in a folder that leads out of the root; empty if there is none."""
    if not _is_inside(folder, root):
        return folder.name
    for path in _walk(folder):
        if path.is_symlink() and not _is_inside(path, root):
            return path.name
    return ""


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder and in those inside, without following links.

    Raises:
        OSError: there is more than a model's folder can contain.
    """
    count = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            if count > _MOST_ENTRIES:
                raise OSError(f"{str(folder)!r} contains more than {_MOST_ENTRIES} files and folders")
            yield Path(parent, name)


def _entries(folder: Path) -> list[Path]:
    """Return what a folder contains, sorted by name."""
    return sorted(folder.iterdir(), key=lambda path: path.name)
