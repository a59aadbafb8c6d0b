"""Reading ONNX models: a file becomes messages, messages become a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lite_core.ir import Graph

__all__ = ["read"]


def read(
    path: str | PathLike[str],
    *,
    lengths: Mapping[str, int | None] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Graph:
    """An ONNX model as a graph of Lite's operators.

    Initializers are constants, also those that are listed as inputs (before IR version 4 all had to be).

    Args:
        path: the ``.onnx`` file, or a folder that holds one. Tensors that it keeps in other files are mapped into
            memory.
        lengths: how many tensors are in each input that is a sequence: those of ``x`` become the inputs ``x[0]``,
            ``x[1]``, and so on; None for an optional input that is empty.
        constants: elements of inputs that are to be constants: a model whose shapes depend on an input's elements is
            faster, and some can only be lowered, when these are known.
        shapes: sizes of dimensions that the model leaves open, for each input all of them.

    Raises:
        ModelFormatError: the file is damaged, or tensors that it keeps in other files cannot be had.
        UnsupportedOperatorError: operators that cannot be lowered; all are listed.
    """
    from lite_onnx.lowering.interface import Given
    from lite_onnx.lowering.model import lower
    from lite_onnx.reader.model_file import model_in, parse

    file = model_in(Path(path))
    arrays = {name: np.asarray(elements) for name, elements in (constants or {}).items()}
    return lower(parse(file), file, Given(lengths or {}, arrays, shapes or {}))
