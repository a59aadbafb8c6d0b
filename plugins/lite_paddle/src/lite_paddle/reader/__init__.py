"""Reading of Paddle model files, legacy and PIR, into the neutral form of :mod:`lite_paddle.source`."""

from __future__ import annotations

from collections.abc import Mapping
from os import SEEK_END, PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core.checks import path_of
from lite_core.errors import InputError, ModelFormatError

from ..source import SourceProgram
from .detect import ProgramFile, candidates_of_stem, find_parameters, find_program, programs_in, sniff_file
from .parameters import load_combined, load_separate

if TYPE_CHECKING:
    from .legacy import LegacyProgram
    from .pir import PirProgram

__all__ = ["read", "sniff"]

#: The size of the largest program. Programs of thousands of operators have a few megabytes.
_MOST_BYTES = 2**28
#: Bytes at the end of a file that are examined before it is read.
_TAIL_BYTES = 4096


def sniff(path: str | PathLike[str]) -> str | None:
    """Detect by content whether a path is a Paddle model, and of which kind; reads at most a few KB of each file.

    Args:
        path: A program file, a directory with one, or the common stem of program and parameters.

    Returns:
        ``"legacy"``, ``"pir"``, ``"paddle_lite"``, or None if it is no Paddle model. Never raises for a foreign file.
    """
    try:
        path = path_of("path", path)
        if path.is_dir():
            found = programs_in(path)
        elif path.is_file():
            return sniff_file(path)
        else:
            found = candidates_of_stem(path) if path.name else []
    except (OSError, ValueError, InputError, ModelFormatError):
        return None  # neither an invalid path nor one that the system rejects is a model
    return found[0].kind if found else None


def read(path: str | PathLike[str], params: str | PathLike[str] | None = None) -> SourceProgram:
    """Read a model.

    Args:
        path: A program (``.pdmodel``, ``__model__``, ``.json``, ``.nb``), a directory with one, or the stem of both
            files.
        params: The combined parameter file, or the directory with one file per parameter. By default, it is
            searched beside the program.

    Returns:
        The program with its parameters, which stay memory-mapped.

    Raises:
        ModelFormatError: A file is foreign, truncated, damaged or missing, or the program is one for
            training.
        InputError: A path is neither a string nor path-like, is empty, or contains a null character; or there is
            no parameter file at ``params``.
    """
    program, parameters = path_of("path", path), None if params is None else path_of("params", params)
    try:
        return _read(program, parameters)
    except (OSError, UnicodeError) as error:
        raise ModelFormatError(f"cannot read {path}: {error}") from error
    except MemoryError as error:
        raise ModelFormatError(f"{path}: there is not enough memory for the program") from error
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # The parsers check what they rely on; other errors caused by damaged files end here.
        raise ModelFormatError(
            f"{path}: the structure of the program is damaged ({type(error).__name__}: {error})"
        ) from error


def _read(path: Path, params: Path | None) -> SourceProgram:
    found = find_program(path)
    if found.kind == "paddle_lite":
        from .paddle_lite import read_paddle_lite

        if params is not None:
            raise InputError(f"{found.path} is a Paddle-Lite model, which holds its parameters: leave out params=")
        return read_paddle_lite(found.path)
    program = _parse(found)
    program.refuse_training()
    return program.build(_load_parameters(program, found.path, params))


def _parse(found: ProgramFile) -> PirProgram | LegacyProgram:
    """Parse the program; the parser of the other kind is not even imported."""
    data = _content(found)
    if found.kind == "pir":
        from .pir import PirProgram

        return PirProgram(found.path, data)
    from .legacy import LegacyProgram

    return LegacyProgram(found.path, data)


def _content(found: ProgramFile) -> bytes:
    """Return the bytes of a program.

    Raises:
        ModelFormatError: It is larger than any program, or incomplete.
    """
    with found.path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        if size > _MOST_BYTES:
            raise ModelFormatError(
                f"{found.path} has {size} bytes; a program has at most {_MOST_BYTES}, its parameters are in other files"
            )
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read().rstrip()
        if found.kind == "pir" and not tail.endswith(b"}"):
            raise ModelFormatError(
                f"{found.path}: the JSON is truncated or damaged: its {size} bytes end with {tail[-8:]!r}"
            )
        file.seek(0)
        return file.read()


def _load_parameters(
    program: PirProgram | LegacyProgram, path: Path, params: Path | None
) -> Mapping[str, np.ndarray[Any, Any]]:
    types = program.parameter_types()
    if not types:
        return {}
    location = find_parameters(path, list(types), params)
    quantized = program.quantized_names()
    if location.is_dir():
        return load_separate(location, types, quantized)
    return load_combined(location, types, program.parameter_name_lists(), quantized)
