"""Reader of ONNX models: a file is parsed into protobuf messages, which are lowered to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lite_core.checks import require
from lite_core.ir import Graph

__all__ = ["read"]

#: The most tensors of a sequence; each becomes an input.
_LONGEST = 2**16


def read(
    path: str | PathLike[str],
    *,
    lengths: Mapping[str, int | None] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_caches: bool = False,
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
        fixed_caches: True if the present caches of GroupQueryAttention are the past ones, written in place. A model
            that declares the same length for both needs no option.

    Raises:
        ModelFormatError: the file is damaged, or tensors that it keeps in other files cannot be read.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
        InputError: an option is of the wrong kind.
    """
    from lite_onnx.lowering.interface import InputOptions
    from lite_onnx.lowering.model import lower
    from lite_onnx.reader.model_file import find_model, parse

    _check_options(lengths or {}, constants or {}, shapes or {})
    require(isinstance(fixed_caches, bool), "fixed_caches", "True or False", fixed_caches)
    file = find_model(Path(path))
    arrays = {name: np.asarray(elements) for name, elements in (constants or {}).items()}
    model, stored = parse(file)
    return lower(model, file, InputOptions(lengths or {}, arrays, shapes or {}, fixed_caches), stored)


def _check_options(lengths: Any, constants: Any, shapes: Any) -> None:
    """Check the kinds of the reader's options. Raises InputError."""
    for option, given in (("lengths", lengths), ("constants", constants), ("shapes", shapes)):
        is_named = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
        require(is_named, option, "a mapping of input names", given)
    for name, length in lengths.items():
        fits = length is None or (type(length) is int and 0 <= length <= _LONGEST)
        require(fits, f"lengths[{name!r}]", f"a number of tensors up to {_LONGEST}, or None", length)
    for name, elements in constants.items():
        require(_is_numbers(elements), f"constants[{name!r}]", "an array of numbers", elements)
    for name, shape in shapes.items():
        is_sequence = isinstance(shape, Sequence) and not isinstance(shape, str)
        fits = is_sequence and all(d is None or isinstance(d, str) or (type(d) is int and d >= 0) for d in shape)
        require(fits, f"shapes[{name!r}]", "a sequence of sizes", shape)


def _is_numbers(given: Any) -> bool:
    try:
        return np.asarray(given).dtype.kind in "biufV"
    except ValueError:  # lists of different lengths
        return False
