"""The cache of machine code: what is read again, and what is not trusted."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_numba.code_cache import fingerprint
from lite_numba.compiling import compiled, dispatcher

FACTOR = 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    return tmp_path / "numba"


def scaled(factor: int) -> Callable[..., Any]:
    def loop(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = factor * x[i]

    return loop


def result(function: Any) -> tuple[bool, float]:
    """Compile a loop; return whether its code was read from the cache, and what it computes of 3."""
    x, out = np.float32([3]), np.empty(1, np.float32)
    made = dispatcher(function, check_bounds=False, sums_in_any_order=False)
    compiled(made, (x, out), "kernel")(x, out)
    return bool(made._cache.read), float(out[0])


def test_code_is_read_again(folder: Path) -> None:
    assert result(scaled(2)) == (False, 6)
    assert result(scaled(2)) == (True, 6)
    assert [path.suffix for path in folder.iterdir()] == [".numba"]


def test_another_constant_is_other_code() -> None:
    assert result(scaled(2)) == (False, 6)
    assert result(scaled(5)) == (False, 15)


def test_a_fingerprint_covers_functions_that_are_called_and_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    def helper(x: int) -> int:
        return x + FACTOR

    def loop(x: int) -> int:
        return helper(x)

    before = fingerprint(loop)
    assert fingerprint(loop) == before
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert fingerprint(loop) != before


def test_damaged_code_is_compiled_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    result(scaled(2))
    [entry] = folder.iterdir()
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)
    with caplog.at_level(logging.WARNING, "lite.numba"):
        assert result(scaled(2)) == (False, 6)
    assert "is damaged" in caplog.text
    assert result(scaled(2)) == (True, 6)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders are protected by access lists there")
def test_code_that_others_can_change_is_not_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    result(scaled(2))
    [entry] = folder.iterdir()
    entry.chmod(0o666)
    with caplog.at_level(logging.WARNING, "lite.numba"):
        assert result(scaled(2)) == (False, 6)
    assert "other users can write" in caplog.text


def test_the_oldest_code_is_removed_above_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(scaled(2))
    [entry] = folder.iterdir()
    filler = folder / "old.numba"
    filler.write_bytes(bytes(2**20))
    os.utime(filler, (0, 0))
    monkeypatch.setenv("LITE_CACHE_LIMIT", "1")
    result(scaled(3))
    assert entry.exists()
    assert not filler.exists()
    assert len(list(folder.iterdir())) == 2


def test_the_cache_can_be_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    assert [result(scaled(2)) for _ in range(2)] == [(False, 6)] * 2
    assert not folder.exists()
