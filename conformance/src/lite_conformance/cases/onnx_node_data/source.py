"""Finding the node test data: in an installed onnx 1.17, a folder, or a wheel, which is unpacked."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from lite_core.errors import InputError
from lite_core.private_files import make_private_folder
from lite_core.storage import cache_folder

__all__ = ["find_node_data"]

_INSIDE = "backend/test/data/node"
_REMEDY = (
    "the wheel of onnx 1.17.0 contains the data, newer ones do not; "
    "get it with `pip download --no-deps --only-binary=:all: --python-version 3.11 onnx==1.17.0`"
)


def find_node_data(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder whose sub-folders are the cases.

    Args:
        given: that folder, one that contains it as the package ``onnx`` does, or a wheel or another zip file of
            onnx, which is unpacked into Lite's cache folder. When omitted, the installed package ``onnx``.

    Returns:
        The folder, or None if ``given`` is omitted and the installed package has no data.

    Raises:
        InputError: ``given`` does not exist or has no node data, or cannot be unpacked.
    """
    if given is None:
        return _installed()
    path = Path(given).expanduser()
    if path.is_dir():
        found = _inside(path)
        if found is None:
            raise InputError(f"folder {str(path)!r} has no ONNX node data (folders with a model.onnx); {_REMEDY}")
        return found
    if not path.exists():
        raise InputError(f"there is no file or folder {str(path)!r} with ONNX node data; {_REMEDY}")
    return _unpacked(path)


def _installed() -> Path | None:
    # The package is not imported, which would take a quarter of a second.
    spec = importlib.util.find_spec("onnx")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        found = _inside(Path(location))
        if found is not None:
            return found
    return None


def _inside(folder: Path) -> Path | None:
    for candidate in (folder, folder / _INSIDE, folder / "onnx" / _INSIDE):
        if next(candidate.glob("*/model.onnx"), None) is not None:
            return candidate
    return None


def _unpacked(archive: Path) -> Path:
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [n for n in opened.namelist() if f"{_INSIDE}/" in n]
            if not any(n.endswith("/model.onnx") for n in names):
                raise InputError(f"{str(archive)!r} has no ONNX node data ({_INSIDE}/*/model.onnx); {_REMEDY}")
            target = _cache_folder(archive) / f"node-data-{_digest(archive)}"
            if not target.exists():
                _extract(opened, names, target)
    except zipfile.BadZipFile as error:
        raise InputError(f"{str(archive)!r} is neither a folder nor a wheel or zip file: {error}") from error
    return target


def _cache_folder(archive: Path) -> Path:
    """Return the folder for unpacked data, which other users cannot change."""
    folder = cache_folder("onnx-node-data")
    problem = "LITE_CACHE_DIR is off"
    if folder is not None:
        try:
            make_private_folder(folder)
            return folder
        except OSError as error:
            problem = f"{folder} cannot be used: {error}"
    raise InputError(
        f"{str(archive)!r} cannot be unpacked into the cache: {problem}. "
        "Set LITE_CACHE_DIR to another folder, or unpack it and name the folder instead"
    )


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()[:16]


def _extract(archive: zipfile.ZipFile, names: list[str], target: Path) -> None:
    """Unpack the data to ``target`` atomically by renaming, because several processes may do this at once."""
    work = Path(tempfile.mkdtemp(prefix="node-data-", dir=target.parent))
    try:
        archive.extractall(work, names)
        found = next(work.rglob(_INSIDE))
        try:
            found.rename(target)
        except OSError:
            if not target.exists():  # otherwise another process has created it
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
