"""Requests for the suite: what a test file, or the command line, wants to run.

NOTE: this module is imported by every pytest of the environment; it imports nothing of the suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EXPECTATIONS", "SEARCH_PATH_AT_START", "SuiteRequest"]

#: The name of the test that checks the entries of the backend's ``conformance.toml``.
EXPECTATIONS = "expectations"

#: The folders of modules when pytest starts, before its configuration and conftest.py add others; empty where the
#: plugin is switched off.
SEARCH_PATH_AT_START: set[str] = set()


@dataclass(frozen=True, eq=False)
class SuiteRequest:
    """The arguments of :func:`lite_conformance.pytest_plugin.conformance_tests`, or the options of the command line.

    Attributes:
        backend: the backend's name, or the object.
        level: the levels as text; empty for the default.
        names_of_module: the names of the module that asks, in which a backend object may be found.
        is_of_command_line: True if the options asked for it: then a backend that is missing is an error.
        others: the arguments of the same names.
    """

    backend: object
    level: str = ""
    cases: Sequence[str] = ()
    ops: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    exclude: Sequence[str] = ()
    shard: str = "1/1"
    seed: int = 0
    examples: int = 20
    timeout: float = 60.0
    models: Sequence[str] = ()
    expectations: str | None = None
    precision: str = "float32"
    names_of_module: Mapping[str, Any] = field(default_factory=dict, repr=False)
    is_of_command_line: bool = False
