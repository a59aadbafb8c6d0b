"""Finding a backend object in a module, so that worker processes can import it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lite_conformance.pytest_plugin.requests import SEARCH_PATH_AT_START, SuiteRequest
from lite_conformance.run.expectations import find_expectations

__all__ = ["Located", "locate", "search_path_of_tests"]


@dataclass(frozen=True, slots=True)
class Located:
    """The backend of a request.

    Attributes:
        name: the specification for worker processes; for an object that they cannot import, its name.
        is_importable: False for such an object.
        expectations: the file of the request, or the ``conformance.toml`` of the package that defines the object;
            None for the file that the worker process finds.
    """

    name: str
    is_importable: bool = True
    expectations: str | None = None


def locate(request: SuiteRequest) -> Located:
    """Return how worker processes find the backend of a request.

    Raises:
        InputError: the ``conformance.toml`` of the package that defines a backend object is wrong.
    """
    thing: Any = request.backend
    if isinstance(thing, str):
        return Located(thing, expectations=request.expectations)
    specification = _specification(thing, request)
    if specification:
        return Located(specification, expectations=request.expectations or _expectations_of(thing))
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None) or type(thing).__name__
    return Located(str(name), False, request.expectations)


@contextmanager
def search_path_of_tests() -> Iterator[None]:
    """Let processes that start in this context find the modules that the test files find."""
    before = os.environ.get("PYTHONPATH")
    added = [folder for folder in sys.path if folder and folder not in SEARCH_PATH_AT_START]
    if added:
        os.environ["PYTHONPATH"] = os.pathsep.join([*added, *([before] if before else [])])
    try:
        yield
    finally:
        if before is not None:
            os.environ["PYTHONPATH"] = before
        elif added:
            del os.environ["PYTHONPATH"]


def _specification(thing: Any, request: SuiteRequest) -> str:
    """Return ``module:attribute`` or ``file.py:attribute`` of an object; empty if no module has it."""
    names = request.names_of_module
    own = str(names.get("__name__", ""))
    for module_name in (getattr(thing, "__module__", None), type(thing).__module__):
        module = sys.modules.get(str(module_name))
        if module is not None and module.__name__ != own and _is_importable(module):
            for attribute, value in list(vars(module).items()):
                if value is thing:
                    return f"{module.__name__}:{attribute}"
    attribute = next((name for name, value in names.items() if value is thing), "")
    if not attribute:
        return ""
    module = sys.modules.get(own)
    if "." in own and module is not None and _is_importable(module):  # it may have relative imports
        return f"{own}:{attribute}"
    return f"{os.path.relpath(names['__file__'])}:{attribute}" if names.get("__file__") else ""


def _is_importable(module: ModuleType) -> bool:
    """Return True if another process would find the same module by its name."""
    root = sys.modules.get(module.__name__.partition(".")[0])
    known = getattr(root, "__spec__", None)
    if root is None or known is None or root.__name__ == "__main__":
        return False
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        found = find(root.__name__, None) if find is not None else None
        if found is not None:
            return bool(found.origin == known.origin)
    return False


def _expectations_of(thing: Any) -> str | None:
    """Return the ``conformance.toml`` of the package that defines a backend, or the function that returns it."""
    module = thing.__module__ if isinstance(getattr(thing, "__name__", None), str) else type(thing).__module__
    return find_expectations(module).source or None
