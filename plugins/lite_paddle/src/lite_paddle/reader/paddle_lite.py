"""Reading of Paddle-Lite's model files (``.nb``) into the form that legacy programs have."""

from __future__ import annotations

import logging
from pathlib import Path

from lite_core.errors import ModelFormatError

from ..paddle_lite.container import NEWEST_OPT_VERSION, read_folder, read_model
from ..paddle_lite.header import FOLDER_FILES
from ..paddle_lite.narrow_weights import widened
from ..paddle_lite.program import KERNEL_ATTRIBUTE, Program
from ..paddle_lite.program_desc import to_message
from ..source import SourceProgram, SourceType, describe_version
from .legacy import LegacyProgram

__all__ = ["read_paddle_lite", "source_of"]

logger = logging.getLogger("lite.paddle")

# Paddle-Lite computes like Paddle 2.4: tensors have at least one axis, relu6, swish and hard_swish have parameters.
_BEHAVES_LIKE = 2_004_002


def read_paddle_lite(path: Path) -> SourceProgram:
    """Read a ``.nb`` file, or ``__model__.nb`` of a folder, with the parameters that belong to it.

    Raises:
        ModelFormatError: the file is damaged, or the program is inconsistent.
    """
    content = read_folder(path.parent) if path.name == FOLDER_FILES[0] else read_model(path)
    if content.opt_version != NEWEST_OPT_VERSION:
        written = f"version {content.opt_version}" if content.opt_version else "a version before 2.3"
        logger.warning("%s was written by %s of Paddle-Lite; Lite knows %s", path, written, NEWEST_OPT_VERSION)
    return source_of(content, path)


def source_of(content: Program, path: Path) -> SourceProgram:
    """Return a program of Paddle-Lite in the form that the lowering reads.

    Args:
        content: the program.
        path: its file, for messages.

    Raises:
        ModelFormatError: the program is inconsistent, or for training.
    """
    try:
        parameters = widened(content)
        program = LegacyProgram.of_message(path, to_message(content))
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None
    program.refuse_training()
    source = program.build(parameters)
    source.kind = "paddle_lite"
    source.facts = {"container_version": str(content.meta_version), "opt_version": content.opt_version or "before 2.3"}
    if targets := _targets(content):
        source.facts["targets"] = " ".join(targets)
    if source.version:
        source.facts["paddle_version"] = describe_version(source.version)
    source.version = min(source.version or _BEHAVES_LIKE, _BEHAVES_LIKE)
    # Shapes are informational in these files. One without dimensions is unknown, and not the shape of a single number.
    for _, value in source.inputs:
        if value.type is not None and value.type.shape == ():
            value.type = SourceType(value.type.dtype, None, value.type.is_array, value.type.lod_level)
    return source


def _targets(content: Program) -> list[str]:
    """Return the devices that the file has kernels for, besides host; OpenCL is the preferred one of several."""
    kernels = [str(op.get(KERNEL_ATTRIBUTE, "")).split("/") for block in content.blocks for op in block.operators]
    numbers = {parts[2] for parts in kernels if len(parts) == 5}
    return [name for number, name in (("5", "opencl"), ("4", "arm"), ("2", "x86")) if number in numbers]
