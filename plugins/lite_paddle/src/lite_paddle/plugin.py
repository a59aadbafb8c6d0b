"""The hooks of lite-paddle. Imports nothing heavy: the reader is imported when a file is examined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    import click

    from lite_core.ir import Graph
    from lite_paddle.operator_table import OperatorRow

LITE_API_VERSION = 1


class PaddleFormat:
    """Reader for inference models of Paddle 1.x to 3.x, and of Paddle-Lite (``.nb``); see :mod:`lite_paddle.reader`."""

    name = "paddle"
    suffixes = (".pdmodel", ".json", ".nb", "__model__")

    def sniff(self, path: Path) -> bool:
        """Return True if the file or folder holds a Paddle program."""
        from lite_paddle.reader import sniff

        return sniff(path) is not None

    def read(self, path: Path, *, params: str | Path | None = None, lod: bool = False) -> Graph:
        """Read a model and lower it to Lite's opset.

        Args:
            path: the program file, or a folder with one.
            params: the parameter file, if it is not beside the program.
            lod: whether inputs with sequences (LoD) hold several: the graph then has an input ``NAME.lod`` with the
                sequence offsets of each, ``NAME.lod0``, ``NAME.lod1`` ... if it has several levels.

        Raises:
            ModelFormatError: the file is damaged, not an inference model, or parameters are missing.
            UnsupportedOperatorError: operators that cannot be lowered; all are listed.
        """
        from lite_paddle.lowering import lower
        from lite_paddle.reader import read

        return lower(read(path, params=params), lod=lod)

    def operator_table(self, backends: Sequence[str] | None = None) -> list[OperatorRow]:
        """Return a row for every operator of Paddle, see :mod:`lite_paddle.operator_table`, for ``lite ops``."""
        from lite_paddle.operator_table import operator_table

        return operator_table(backends)


@hookimpl
def lite_formats() -> list[PaddleFormat]:
    return [PaddleFormat()]


@hookimpl
def lite_commands() -> list[click.Command]:
    from lite_tools.commands import LazyCommand

    return [
        LazyCommand("demo", "Read the text in a picture", "lite_paddle.commands.demo"),
        LazyCommand("opt", "Convert a model with the options of Paddle-Lite's opt", "lite_paddle.commands.opt"),
    ]
