"""Options of a backend's own: what it does not know is refused with a message that helps."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lite_core.errors import InputError
from lite_core.plugins.options import check_known

KNOWN = {"mkl": ("auto", "always", "never"), "depth": int, "path": str, "fast": bool, "level": (0, 1)}


@pytest.mark.parametrize(
    "options",
    [{}, {"mkl": "never"}, {"mkl": "auto", "depth": 3, "path": "", "fast": False, "level": 1}],
)
def test_what_is_known_passes(options: dict[str, Any]) -> None:
    check_known("x86", options, KNOWN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mlk": "never"},
            "backend 'x86' has no option 'mlk' (did you mean 'mkl'?); it has: depth, fast, level, mkl, path",
        ),
        ({"MKL": "never"}, "backend 'x86' has no option 'MKL' (did you mean 'mkl'?)"),
        ({"workers": 3}, "backend 'x86' has no option 'workers'; it has: "),
        ({3: "never"}, "backend 'x86' has no option 3; it has: "),
        (
            {"mkl": "sometimes"},
            "option 'mkl' of backend 'x86' must be one of 'auto', 'always', 'never'; it is 'sometimes'",
        ),
        ({"mkl": ["auto"]}, "it is ['auto']"),
        ({"mkl": None}, "it is None"),
        ({"depth": "3"}, "option 'depth' of backend 'x86' must be a value of type int; it is '3'"),
        ({"depth": True}, "it is True"),
        ({"fast": 1}, "must be a value of type bool; it is 1"),
        ({"level": True}, "must be one of 0, 1; it is True"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_known("x86", options, KNOWN)


def test_a_backend_without_options_has_none() -> None:
    with pytest.raises(InputError, match="has no option 'mkl'; it has: none$"):
        check_known("toy", {"mkl": "never"}, {})
