"""Strings: constants, look-ups and the text operators of ONNX. They run on ``host`` only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, TensorType, fresh_dim
from lite_core.ops.inference import Inference, fail, infer_broadcast, same_as_first
from lite_core.ops.registry import choice, op, optional, required
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]


def _text_array(texts: Any, shape: tuple[int, ...]) -> Array:
    array: Array = np.empty(math.prod(shape), object)
    array[:] = list(texts)
    return array.reshape(shape)


# **** constants and look-ups ****


def _infer_strings(inference: Inference) -> list[TensorType]:
    texts, shape = inference.attributes["strings"], inference.attributes["shape"]
    if any(size < 0 for size in shape) or math.prod(shape) != len(texts):
        raise fail(f"it has {len(texts)} strings for the shape {list(shape)}")
    return [TensorType(DType.STRING, shape)]


@op(
    "Strings",
    "-> output: string",
    domain="lite",
    attributes={"strings": required("strs"), "shape": required("ints")},
    infer=_infer_strings,
)
def strings(*, strings: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    """A constant tensor of strings, row by row. A graph's own constants are numbers."""
    return _text_array(strings, shape)


@op(
    "StringPosition",
    "X: string -> Y: int64",
    domain="lite",
    attributes={"strings": required("strs")},
    infer=same_as_first,
)
def string_position(x: Array, *, strings: tuple[str, ...]) -> Array:
    """The first position of each element in a list of strings; the list's length for one that is not in it."""
    positions = {text: position for position, text in reversed(list(enumerate(strings)))}
    found = [positions.get(text, len(strings)) for text in x.reshape(-1).tolist()]
    return np.asarray(np.array(found, np.int64).reshape(x.shape))


# **** texts ****


@op("StringConcat", "X: string, Y: string -> Z: string", infer=infer_broadcast)
def string_concat(x: Array, y: Array) -> Array:
    """Each string of ``X`` followed by that of ``Y``."""
    x, y = np.broadcast_arrays(x, y)
    return _text_array((a + b for a, b in zip(x.reshape(-1), y.reshape(-1))), x.shape)


def _infer_normalizer(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is None:
        return [None]
    if len(shape) not in (1, 2) or (len(shape) == 2 and isinstance(shape[0], int) and shape[0] != 1):
        raise fail(f"the input must have the shape [C] or [1, C], has {format_shape(shape)}")
    return [(*shape[:-1], fresh_dim("words") if inference.attributes["stopwords"] else shape[-1])]


@op(
    "StringNormalizer",
    "X: string -> Y: string",
    attributes={
        "case_change_action": choice("NONE", "LOWER", "UPPER"),
        "is_case_sensitive": 0,
        "locale": optional("str"),
        "stopwords": optional("strs"),
    },
    infer=_infer_normalizer,
)
def string_normalizer(
    x: Array, *, case_change_action: str, is_case_sensitive: int, locale: str | None, stopwords: tuple[str, ...] | None
) -> Array:
    """The strings without the stop words, in lower or upper case; one empty string if none is left.

    Case is changed by the rules of Unicode, not by those of ``locale``.
    """
    plain: Callable[[str], str] = str if is_case_sensitive else str.lower
    left_out = {plain(word) for word in stopwords or ()}
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes[case_change_action]
    kept = [change(text) for text in x.reshape(-1).tolist() if plain(text) not in left_out]
    if stopwords and not kept:
        kept = [""]
    return _text_array(kept, (*x.shape[:-1], len(kept)))


def _infer_split(inference: Inference) -> list[TensorType]:
    shape = inference.shape(0)
    pieces = None if shape is None else (*shape, fresh_dim("pieces"))
    return [TensorType(DType.STRING, pieces), TensorType(DType.INT64, shape)][: inference.n_outputs]


@op(
    "StringSplit",
    "X: string -> Y: string, Z: int64",
    attributes={"delimiter": optional("str"), "maxsplit": optional("int")},
    infer=_infer_split,
)
def string_split(x: Array, *, delimiter: str | None, maxsplit: int | None) -> tuple[Array, Array]:
    """The pieces of each string along a new last axis, filled up with empty strings; and their numbers.

    Without a delimiter the strings are cut at white space. An empty string has no pieces, as in ONNX Runtime.
    """
    most = -1 if maxsplit is None else maxsplit
    pieces = [text.split(delimiter or None, most) if text else [] for text in x.reshape(-1).tolist()]
    width = max(map(len, pieces), default=0)
    rows = [text for row in pieces for text in (*row, *[""] * (width - len(row)))]
    return _text_array(rows, (*x.shape, width)), np.array([len(row) for row in pieces], np.int64).reshape(x.shape)


@op(
    "RegexFullMatch",
    "X: string -> Y: bool",
    attributes={"pattern": required("str")},
    infer=same_as_first,
)
def regex_full_match(x: Array, *, pattern: str) -> Array:
    """True for each string that a regular expression matches as a whole."""
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise fail(f"the pattern {pattern!r} is not a regular expression of Python: {error}") from None
    return np.asarray(np.reshape([matches(text) is not None for text in x.reshape(-1).tolist()], x.shape), bool)
