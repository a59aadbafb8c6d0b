"""Hypothesis without traces and without influences of the machine: no files, and the same examples everywhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis import configuration
from hypothesis.internal.conjecture import providers

__all__ = ["hermetic_hypothesis"]

#: A folder that cannot be created: hypothesis works without its files, and nothing is left on the disk.
_NOWHERE = Path(os.devnull) / "hypothesis"
_HOME = "__hypothesis_home_directory"
_LOCAL = "_get_local_constants"

_lock = threading.RLock()


@contextmanager
def hermetic_hypothesis() -> Iterator[None]:
    """Keep hypothesis from writing files, and from drawing constants that it finds in the modules of this process.

    Which modules are imported depends on the backend, on how it is installed, and on the cases that ran before: with
    these constants, a seed would not give the same examples. Newer versions of hypothesis draw them; for older ones
    there is nothing to do.
    """
    with _lock:
        home = vars(configuration).get(_HOME)
        local = getattr(providers, _LOCAL, None)
        configuration.set_hypothesis_home_dir(_NOWHERE)
        if local is not None:
            nothing = type(providers.GLOBAL_CONSTANTS)()
            setattr(providers, _LOCAL, lambda: nothing)
        try:
            yield
        finally:
            with suppress(Exception):
                configuration.set_hypothesis_home_dir(home)
            if local is not None:
                setattr(providers, _LOCAL, local)
