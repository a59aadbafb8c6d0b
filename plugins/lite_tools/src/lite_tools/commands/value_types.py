"""Types of options and arguments whose values a shell can complete: models, arrays, backends, operators, precisions."""

from __future__ import annotations

import click
from click.types import StringParamType

__all__ = ["ARRAY_FILE", "BACKEND", "BACKENDS", "MODEL_FILE", "OPERATOR", "PRECISION", "NamesType"]


class NamesType(StringParamType):
    """A text that names what is installed; any text is accepted, and the command refuses what does not exist.

    Args:
        completes: what the text names, see :mod:`lite_tools.completion.values`.
    """

    def __init__(self, completes: str) -> None:
        self.completes = completes


class _FileType(click.Path):
    """The path of a file or a folder, of which some files are meant."""

    def __init__(self, completes: str) -> None:
        super().__init__()
        self.completes = completes


#: The path of a model.
MODEL_FILE = _FileType("models")
#: ``[NAME=]FILE``: the path of an array or an image, for an input.
ARRAY_FILE = NamesType("arrays")
#: The name of a backend.
BACKEND = NamesType("backend")
#: Names of backends, separated by commas.
BACKENDS = NamesType("backends")
#: The name of an operator.
OPERATOR = NamesType("operator")
#: ``[NODES=]TYPE``: a precision.
PRECISION = NamesType("precision")
