"""Planted bugs that another process finds; used on a command line as ``new_process_backends.py:name``."""

from __future__ import annotations

import sys
from pathlib import Path

if str(Path(__file__).parent) not in sys.path:  # a new process loads this file by its path
    sys.path.insert(0, str(Path(__file__).parent))

from planted_parts import backend_of
from planted_saving import SavesHandles, SavesPrograms
from planted_state import LazyBackend

lazy_backend = backend_of(LazyBackend)
saves_handles = backend_of(SavesHandles)
#: A correct backend.
saves_programs = backend_of(SavesPrograms)
