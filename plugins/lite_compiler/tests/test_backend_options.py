"""Backend options: unknown names and values are refused with a message that lists the valid ones."""

from __future__ import annotations

from typing import Any

import pytest

from lite_compiler.options import check_known
from lite_core.errors import InputError

KNOWN = {"mkl": ("auto", "always", "never"), "depth": int, "path": str, "fast": bool, "level": (0, 1)}


@pytest.mark.parametrize(
    "options",
    [{}, {"mkl": "never"}, {"mkl": "auto", "depth": 3, "path": "", "fast": False, "level": 1}],
)
def test_known_options_are_accepted(options: dict[str, Any]) -> None:
    check_known("x86", options, KNOWN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mlk": "never"}, "'x86'.*'mlk'.*'mkl'.*: depth, fast, level, mkl, path"),
        ({"MKL": "never"}, "'x86'.*'MKL'.*'mkl'"),
        ({"workers": 3}, "'x86'.*'workers'.*: depth"),
        ({3: "never"}, "'x86'.*option 3.*: depth"),
        ({"mkl": "sometimes"}, "'mkl'.*'x86'.*'auto', 'always', 'never'.*'sometimes'"),
        ({"mkl": ["auto"]}, r"\['auto'\]$"),
        ({"mkl": None}, "None$"),
        ({"depth": "3"}, "'depth'.*'x86'.* int.*'3'"),
        ({"depth": True}, "True$"),
        ({"fast": 1}, " bool.* 1$"),
        ({"level": True}, "0, 1.*True"),
    ],
)
def test_unknown_options_and_values_are_refused(options: dict[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_known("x86", options, KNOWN)


def test_backend_without_options_refuses_all() -> None:
    with pytest.raises(InputError, match=r"'mkl'.*: none$"):
        check_known("toy", {"mkl": "never"}, {})
