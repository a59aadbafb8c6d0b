"""A context for calls of the backend under test that turns its exceptions into failures of the case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lite_conformance.judge.outcome import Failure
from lite_core.errors import LiteError

__all__ = ["backend_call"]


@contextmanager
def backend_call(what: str) -> Iterator[None]:
    """Turn exceptions of the backend under test into a Failure; used around each call of it.

    NumPy's error settings are restored afterwards, so that those of a backend do not affect the suite.

    Args:
        what: start of the failure's sentence: ``"run()"``.

    Raises:
        Failure: the backend raised any exception, ``SystemExit`` included, but not ``KeyboardInterrupt``.
    """
    try:
        with np.errstate():
            yield
    except (Failure, KeyboardInterrupt):
        raise
    except BaseException as error:
        reason = f"{what} raised {type(error).__name__}: {_text(error)}"
        advice = "" if isinstance(error, LiteError) else "; backends raise LiteError with a sentence for the user"
        raise Failure(reason + advice) from error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"(its str() raised {type(another).__name__})"
