"""Backends with one intentional error each; used on a command line as ``wrong_backends.py:backend_NAME``."""

from __future__ import annotations

import sys
from pathlib import Path

if str(Path(__file__).parent) not in sys.path:  # a worker of the suite loads this file by its path
    sys.path.insert(0, str(Path(__file__).parent))

import wrong_contract
import wrong_memory
import wrong_numbers
import wrong_saving
from wrong_executables import WrongBackend, right

from lite_core.builtin import HostBackend

#: All backends by name; they are also attributes ``backend_NAME`` of the module.
BACKENDS: dict[str, HostBackend] = {
    "right": WrongBackend("right", right),
    **wrong_numbers.BACKENDS,
    **wrong_memory.BACKENDS,
    **wrong_saving.BACKENDS,
    **wrong_contract.BACKENDS,
}


def __getattr__(name: str) -> HostBackend:
    try:
        return BACKENDS[name.removeprefix("backend_")]
    except KeyError:
        raise AttributeError(name) from None
