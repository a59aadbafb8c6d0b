"""Packages of this checkout as pip would install them, without pip: built and unpacked into a folder."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from hatchling.build import build_wheel

__all__ = ["unpacked_wheel"]


def unpacked_wheel(package: Path, folder: Path) -> Path:
    """Build the wheel of a package and unpack it, with its dist-info.

    Args:
        package: the folder with pyproject.toml.
        folder: for the wheel, and for the folder ``site`` with its contents, which is returned.
    """
    before = Path.cwd()
    os.chdir(package)
    try:
        wheel = build_wheel(str(folder))
    finally:
        os.chdir(before)
    with zipfile.ZipFile(folder / wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"
