"""The files of ``--input``: which array of which file belongs to which input of the model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from lite_core.checks import is_there
from lite_core.errors import ModelFormatError
from lite_core.ir import TensorType
from lite_tools.commands.array_files import HeldArray, held_arrays
from lite_tools.commands.next_commands import typed_command, with_correction, with_next_command
from lite_tools.commands.suggestions import did_you_mean, similar_file, similar_names

__all__ = ["InputFile", "input_files", "reading", "split_name"]

_ARRAY_OF_ARCHIVE = re.compile(r"(.+\.npz):([^/\\]+)", re.IGNORECASE)
_SPELLINGS = ("--input", "-i", "--data")
_OPTION = "--input"


class InputFile(NamedTuple):
    """The file for an input of the model; ``array`` is the name of an array in an .npz file, else empty."""

    file: str
    array: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.array}" if self.array else self.file


def input_files(types: Mapping[str, TensorType], texts: Sequence[str]) -> dict[str, InputFile]:
    """Return the file for each input that the texts of ``--input`` name.

    Args:
        types: the model's inputs.
        texts: ``[NAME=]FILE``, or ``[NAME=]FILE.npz:ARRAY`` for an array whose name is not that of the input. An .npz
            file without ``NAME=`` and ``:ARRAY`` holds arrays by input name. A text that is the name of an existing
            file is read as a file, even if it contains an equals sign.

    Raises:
        click.BadParameter: there is no such file, input or array, or an .npz file holds arrays that belong to no
            input. The message says what the file holds, and the next command is the corrected one.
    """
    found: dict[str, InputFile] = {}
    for text in texts:
        is_file = os.path.isfile(text)
        if Path(text).suffix.lower() == ".npz" and (is_file or "=" not in text):
            held = _held(_existing(text))
            if not held or held.keys() - types.keys():
                raise _mismatch(types, text, held, [other for other in texts if other != text])
            found.update({name: InputFile(text, name) for name in held})
        else:
            name, file = split_name(types, text, _OPTION, has_no_name=is_file)
            found[name] = _input_file(types, text, name, file)
    return found


def split_name(types: Mapping[str, TensorType], text: str, option: str, has_no_name: bool = False) -> tuple[str, str]:
    """Split ``NAME=VALUE``; without a name, or if ``has_no_name``, the text is the value of the only input.

    Raises:
        click.BadParameter: there is no such input, or the model has several and no name is given.
    """
    name, separator, value = text.partition("=")
    if has_no_name or not separator:
        if len(types) != 1:
            again = typed_command(replaced={text: f"{next(iter(types))}={text}"}) if types else ""
            error = click.BadParameter(
                f"the model has the inputs {', '.join(types)}; write NAME={text}", param_hint=option
            )
            raise with_next_command(error, again)
        return next(iter(types)), text
    if name not in types:
        near = similar_names(name, types) or ([*types] if len(types) == 1 else [])
        hint = did_you_mean(name, types) or f"the inputs are {', '.join(types)}"
        error = click.BadParameter(f"there is no input {name!r}; {hint}", param_hint=option)
        raise with_next_command(error, typed_command(replaced={text: f"{near[0]}={value}"}) if near else "")
    return name, value


@contextmanager
def reading(file: str, kind: str) -> Iterator[None]:
    """Turn exceptions for foreign, damaged or truncated files into an error that names the file."""
    try:
        yield
    # NumPy, zipfile and Pillow raise many kinds for damaged files: TokenError, struct.error, zlib.error, SyntaxError,
    # and MemoryError for a size that no file has.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise click.BadParameter(f"{file} cannot be read as {kind}: {reason}", param_hint=_OPTION) from None


def _input_file(types: Mapping[str, TensorType], text: str, name: str, file: str) -> InputFile:
    """Return the file for one input; of an .npz file, the array of this name, or the only one."""
    array = ""
    if not os.path.isfile(file) and (parts := _ARRAY_OF_ARCHIVE.fullmatch(file)):
        file, array = parts.groups()
    _existing(file)
    if Path(file).suffix.lower() != ".npz" or not _is_archive(file):
        return InputFile(file)
    held = _held(file)
    if not array:
        array = name if name in held or len(held) != 1 else next(iter(held))
    if array in held:
        return InputFile(file, array)
    wanted = similar_names(array, held, 1) or _fitting(types[name], held)
    hint = f"; did you mean {name}={file}:{wanted[0]}?" if wanted else ""
    error = click.BadParameter(f"{file} holds {_listed(held)}, and no {array!r}{hint}", param_hint=_OPTION)
    again = typed_command(replaced={text: f"{name}={file}:{wanted[0]}"}) if wanted else ""
    raise with_next_command(error, again)


def _mismatch(
    types: Mapping[str, TensorType], file: str, held: Mapping[str, HeldArray], others: Sequence[str]
) -> click.BadParameter:
    """Return the error for an archive with arrays that belong to no input; the next command names those that may."""
    inputs = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    message = f"{file} holds {_listed(held)}; the model has the input{'s' * (len(types) != 1)} {inputs}"
    pairs: dict[str, str] = {name: name for name in types if name in held}
    for name, type_ in types.items():
        left = {each: held[each] for each in held if each not in pairs.values()}
        if name not in pairs and (near := similar_names(name, left, 1) or _fitting(type_, left)):
            pairs[name] = near[0]
    chosen = [f"{name}={file}:{pairs[name]}" for name in types if name in pairs]
    if any(name != array for name, array in pairs.items()):
        message += f"; did you mean --input {' --input '.join(chosen)}?"
    elif chosen:
        message += f"; to use one array and leave the others out, write --input {chosen[0]}"
    words = [word for text in (*chosen, *others) for word in ("--input", text)]
    error = click.BadParameter(message, param_hint=_OPTION)
    return with_next_command(error, typed_command(*words, dropped=_SPELLINGS) if chosen else "")


def _fitting(type_: TensorType, held: Mapping[str, HeldArray]) -> list[str]:
    """Return the arrays that have the type of an input."""
    return [
        name
        for name, array in held.items()
        if array.shape is not None and array.dtype == type_.dtype.numpy and type_.accepts(array.shape)
    ]


def _listed(held: Mapping[str, HeldArray]) -> str:
    return ", ".join(f"{name} {array}".rstrip() for name, array in held.items()) or "no arrays"


def _held(file: str) -> dict[str, HeldArray]:
    with reading(file, "a NumPy archive (.npz) of inputs"):
        return held_arrays(Path(file))


def _is_archive(file: str) -> bool:
    with open(file, "rb") as content:
        return content.read(2) == b"PK"


def _existing(file: str) -> str:
    try:
        exists = is_there(Path(file)) and not os.path.isdir(file)
    except ModelFormatError as error:  # a pipe or a device
        raise click.BadParameter(str(error), param_hint=_OPTION) from None
    if not exists:
        near = similar_file(file)
        hint = f"; did you mean {near}?" if near else ""
        missing = click.BadParameter(f"there is no file {file!r}{hint}", param_hint=_OPTION)
        raise with_correction(missing, file, [near] if near else [])
    return file
