"""Reader of ONNX models: a file is parsed into protobuf messages, which are lowered to a graph."""

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
    """Read an ONNX model as a graph of Lite's operators.

    Initializers become constants, also those listed as inputs (before IR version 4 all had to be listed).

    Args:
        path: the ``.onnx`` file, or a folder that contains one. Tensors that it keeps in other files are mapped into
            memory.
        lengths: the number of tensors in each input that is a sequence: those of ``x`` become the inputs ``x[0]``,
            ``x[1]``, and so on; None for an empty optional.
        constants: elements of inputs that become constants. A model whose shapes depend on an input's elements runs
            faster when they are known, and some such models can only be lowered then.
        shapes: complete shapes of inputs with dimensions that the model leaves open.

    Raises:
        ModelFormatError: the file is damaged, or tensors that it keeps in other files cannot be read.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
    """
    from lite_onnx.lowering.interface import InputOptions
    from lite_onnx.lowering.model import lower
    from lite_onnx.reader.model_file import find_model, parse

    file = find_model(Path(path))
    arrays = {name: np.asarray(elements) for name, elements in (constants or {}).items()}
    return lower(parse(file), file, InputOptions(lengths or {}, arrays, shapes or {}))
