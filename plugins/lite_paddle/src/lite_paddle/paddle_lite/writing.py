"""Conversion of Paddle programs into Paddle-Lite programs for given targets, and their files.

Equal arguments give equal bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path

from lite_core.errors import ModelFormatError

from ..reader.program_proto import message_class
from ..source import SourceProgram
from .container import encode
from .control_flow import write_control_flow
from .draft import Draft
from .emitting import emit
from .finishing import finish
from .narrowing import narrow_weights
from .optimise import optimise
from .placing import Placer, Targets
from .program import Array, Program
from .program_desc import to_message
from .rewriting import rewrite
from .type_numbers import NUMBERS
from .widening import widen

__all__ = ["paddle_lite_program", "write_naive_buffer", "write_protobuf"]

#: Names of the files in the folder of the protobuf form.
PROGRAM_FILE, PARAMETERS_FILE = "model", "params"


def paddle_lite_program(source: SourceProgram, targets: Targets, *, weight_bits: int = 32) -> Program:
    """Return an optimized Paddle-Lite program with a kernel for each operator.

    Args:
        source: the Paddle program.
        targets: the processors that it is for.
        weight_bits: 8 or 16 to store most weights in so many bits, 32 to store them as they are.

    Raises:
        ModelFormatError: the program is from a Paddle-Lite file, whose operators are for other targets.
        UnsupportedOperatorError: operators have no kernel on these targets; the error lists all of them.
    """
    if source.kind == "paddle_lite":
        raise ModelFormatError(
            f"{source.path} is a file for Paddle-Lite already. Convert the Paddle model that it was made from, or "
            "write a file for Lite with lite opt --optimize_out_type=lite"
        )
    draft = Draft.of(source)
    widen(draft)
    optimise(draft, targets)
    rewrite(draft, targets)
    finish(draft)
    variables = write_control_flow(draft)
    Placer(targets).place(draft, f"model {str(source.path)!r} for Paddle-Lite on {','.join(targets.names)}")
    program = emit(draft, variables)
    return program if weight_bits == 32 else narrow_weights(program, weight_bits)


def write_naive_buffer(program: Program, path: Path) -> int:
    """Write a ``.nb`` file and return its size in bytes.

    Raises:
        ModelFormatError: the format cannot hold the program, or the file cannot be written.
    """
    data = encode(program)
    _write(path, data)
    return len(data)


def write_protobuf(program: Program, folder: Path) -> int:
    """Write a folder with Paddle's program and its parameters, and return their size in bytes.

    Raises:
        ModelFormatError: a parameter has an element type without a number, or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelFormatError(f"cannot make the folder {folder}: {error}") from error
    model = to_message(program).SerializeToString(deterministic=True)
    names = sorted(program.parameters, key=str.encode)
    parameters = b"".join(_tensor(name, program.parameters[name]) for name in names)
    _write(folder / PROGRAM_FILE, model)
    _write(folder / PARAMETERS_FILE, parameters)
    return len(model) + len(parameters)


def _tensor(name: str, array: Array) -> bytes:
    """Return a tensor as Paddle stores it: without sequence offsets, its description, its elements."""
    if array.dtype.name not in NUMBERS:
        raise ModelFormatError(f"the parameter {name!r} is {array.dtype.name}, which a Paddle program cannot hold")
    description = message_class("TensorDesc")(data_type=NUMBERS[array.dtype.name], dims=array.shape)
    described: bytes = description.SerializeToString()
    return struct.pack("<IQIi", 0, 0, 0, len(described)) + described + array.tobytes()


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ModelFormatError(f"cannot write {path}: {error}") from error
