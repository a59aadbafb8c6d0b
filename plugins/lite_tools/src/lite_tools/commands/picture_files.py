"""Pictures as inputs of models: which files are pictures, and a check that they can be read, before any other work."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from lite_tools.commands.errors import UnavailableError

__all__ = ["is_picture", "require_pillow"]

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}


def is_picture(file: str) -> bool:
    """Return True if the name of a file, possibly after ``NAME=``, is that of a picture."""
    return Path(file).suffix.lower() in _SUFFIXES


def require_pillow(context: click.Context, parameter: click.Parameter, files: Sequence[str]) -> Sequence[str]:
    """Check, as the callback of an option with input files, that pictures among them can be read.

    Raises:
        UnavailableError: a file is a picture, and Pillow is not installed.
    """
    picture = next(filter(is_picture, files), None)
    if picture is not None and find_spec("PIL") is None:
        raise UnavailableError(
            f"--input {picture}: reading pictures needs Pillow, which is not installed",
            "pip install 'lite-core[images]'",
        )
    return files
