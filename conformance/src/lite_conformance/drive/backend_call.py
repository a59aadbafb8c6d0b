"""Calling the backend under test, so that whatever it raises is its failure and not the suite's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lite_conformance.judge.outcome import Failure
from lite_core.errors import LiteError

__all__ = ["backend_call"]


@contextmanager
def backend_call(what: str) -> Iterator[None]:
    """Around each call of the backend under test: what it raises is its failure, not the suite's.

    Afterwards NumPy's error settings are what they were before, so that a backend's do not reach the suite's numbers.

    Args:
        what: begins the sentence: ``"run()"``.

    Raises:
        Failure: the backend raised anything, ``SystemExit`` included; only an interrupt by the user passes.
    """
    try:
        with np.errstate():
            yield
    except (Failure, KeyboardInterrupt):
        raise
    except BaseException as error:
        told = f"{what} raised {type(error).__name__}: {_text(error)}"
        advice = "" if isinstance(error, LiteError) else "; backends raise LiteError with a sentence for the user"
        raise Failure(told + advice) from error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"(its text cannot be had: {type(another).__name__})"
