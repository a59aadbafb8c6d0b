"""JSON texts: parsed and written with orjson where it is installed (on the usual processors), else with Python's json.

Both give the same values. orjson parses numbers 3 times as fast and writes them 20 times as fast, but knows neither
NaN nor infinities, which Python's json writes and reads as ``NaN``, ``Infinity`` and ``-Infinity``.

A long list of numbers is parsed and written in pieces. A thread that parses a text in one call keeps all others
waiting: Python switches threads between its own instructions only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.messages import Array

__all__ = ["LongList", "list_as_json", "parse_json", "parse_json_with_data", "to_json"]


def _installed_orjson() -> Any:
    try:
        import orjson
    except ImportError:  # an extra
        return None
    return orjson


orjson = _installed_orjson()

#: Bytes of text that are parsed at once, and elements that are written at once.
_PIECE_BYTES = 1 << 18
_PIECE_ELEMENTS = 1 << 14

_DATA = re.compile(rb'"data"\s*:\s*\[')
# The place of a list that was cut out of a text. A client cannot write the same without a backslash.
_CUT = "\0"


def parse_json(text: bytes | memoryview) -> Any:
    """Return the value of a JSON text in UTF-8. NaN, Infinity and -Infinity are accepted.

    Raises:
        InvalidRequestError: the text is not JSON.
    """
    if orjson is not None:
        try:
            return orjson.loads(text)
        except ValueError:
            pass  # it may have NaN, and the message is better for the other parser's whole text
    try:
        return json.loads(str(text, "utf-8"))
    except RecursionError:
        raise InvalidRequestError("the request is JSON that is nested too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"the request is not JSON: {error}") from None
    except ValueError:
        raise InvalidRequestError("the request has an integer of too many digits") from None


class LongList:
    """A long list of a JSON text, parsed while it is read."""

    def __init__(self, text: bytes, begin: int, end: int) -> None:
        self._text, self._begin, self._end = text, begin, end

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the list's elements in pieces.

        Raises:
            InvalidRequestError: the text is not JSON.
        """
        begin = cut = self._begin
        while cut < self._end:
            cut = self._text.find(b",", begin + _PIECE_BYTES, self._end)
            cut = self._end if cut < 0 else cut
            try:
                piece = parse_json(b"[%b]" % self._text[begin:cut])
            except InvalidRequestError:
                piece = []
            if not piece and self._text[self._begin : self._end].strip():
                raise InvalidRequestError(f"the request is not JSON: an error is in bytes {begin} to {cut}, in a list")
            yield piece
            begin = cut + 1


def parse_json_with_data(text: bytes | memoryview) -> Any:
    """Return the value of a request for inference. Long flat lists in ``inputs[].data`` are a :class:`LongList`.

    Raises:
        InvalidRequestError: the text is not JSON, but for the content of a long list.
    """
    if len(text) < 2 * _PIECE_BYTES:
        return parse_json(text)
    text = bytes(text)
    rest, lists = _cut_lists(text)
    if not lists or b"\\" in rest:
        return parse_json(text)
    try:
        document = parse_json(rest % tuple(to_json({_CUT: index}) for index in range(len(lists))))
    except InvalidRequestError:
        return parse_json(text)  # raises too, and states positions in the whole text
    inputs = document.get("inputs") if type(document) is dict else None
    for item in inputs if type(inputs) is list else ():
        data = item.get("data") if type(item) is dict else None
        if type(data) is dict and _CUT in data:
            item["data"] = lists[data[_CUT]]
    return document


def _cut_lists(text: bytes) -> tuple[bytes, list[LongList]]:
    """Return a text as a format with a %b for each of its long lists of numbers, and the lists."""
    parts: list[bytes] = []
    lists: list[LongList] = []
    start = 0
    found = text.find(b'"data"')
    while found >= 0:
        match = _DATA.match(text, found)
        following = found + len(b'"data"')
        if match:
            begin = match.end()
            # Nothing is searched twice, whatever the text is: each search ends at the next quotation mark.
            following = text.find(b'"', begin)
            following = len(text) if following < 0 else following
            end = text.find(b"]", begin, following)
            if end - begin > _PIECE_BYTES and all(text.find(other, begin, end) < 0 for other in (b"[", b"{")):
                parts.append(text[start : begin - 1])
                lists.append(LongList(text, begin, end))
                start = end + 1
        found = text.find(b'"data"', following)
    parts.append(text[start:])
    return b"%b".join(part.replace(b"%", b"%%") for part in parts), lists


def to_json(value: Any) -> bytes:
    """Return a small value as JSON."""
    return json.dumps(value).encode()


def list_as_json(array: Array) -> Iterable[bytes]:
    """Yield pieces of the JSON list of an array's elements, row by row: numbers, booleans or strings.

    NaN is null, for want of anything else that all readers accept. Infinities are ``Infinity`` and ``-Infinity``,
    which JSON does not have, but Python's and Triton's readers know.
    """
    if array.dtype.kind in "fV" and array.dtype.itemsize == 2:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            array = array.astype(np.float32)
    flat = np.ascontiguousarray(array).reshape(-1)
    yield b"["
    for start in range(0, flat.size, _PIECE_ELEMENTS):
        if start:
            yield b","
        yield _elements_as_json(flat[start : start + _PIECE_ELEMENTS])
    yield b"]"


def _elements_as_json(flat: Array) -> bytes:
    with np.errstate(invalid="ignore"):
        is_finite = flat.dtype.kind != "f" or bool(np.isfinite(flat).all())
    if orjson is not None and is_finite and flat.dtype.kind != "O":
        written: bytes = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)
        return written[1:-1]
    text = json.dumps(flat.tolist(), separators=(",", ":"))[1:-1]
    return (text if is_finite else text.replace("NaN", "null")).encode()
