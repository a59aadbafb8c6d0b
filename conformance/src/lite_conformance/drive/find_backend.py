"""Finding the backend under test: an installed one, or an attribute of a module or file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lite_core.backend import Backend
from lite_core.errors import BackendUnavailableError, InputError
from lite_core.plugins import PluginManager, available_backends, default_plugins, plugins_with
from lite_core.plugins.contracts import missing_members
from lite_tools.commands import did_you_mean, similar_names, with_correction

__all__ = ["find_backend", "require_backend"]


def find_backend(spec: str) -> tuple[Backend, PluginManager, str]:
    """Return the backend that a specification names, a plugin manager that contains it, and its module's name.

    Args:
        spec: an installed backend's name; or ``package.module:attribute`` or ``path/to/file.py:attribute``,
            where the attribute is a backend or a function that returns one.

    Raises:
        BackendUnavailableError: no such backend is installed.
        InputError: the module, file or attribute does not exist or is not a backend.
    """
    module_name, colon, attribute = spec.rpartition(":")
    if not colon or attribute.isdecimal():
        name = spec if not colon else module_name
        return _installed(name)
    module = _import(module_name)
    thing = getattr(module, attribute, None)
    if thing is None:
        raise InputError(f"module {module_name!r} has no attribute {attribute!r}, which --backend {spec} names")
    if isinstance(thing, type) or (callable(thing) and not isinstance(thing, Backend)):
        with _input_errors(f"{spec}()"):
            thing = thing()
    require_backend(thing, spec)
    return thing, plugins_with(thing), module.__name__


def require_backend(thing: Any, what: str) -> None:
    """Raise an InputError unless an object has the members that the contract requires of a backend."""
    missing = missing_members(thing, "backend")
    if missing:
        raise InputError(f"{what} is not a backend: it lacks {', '.join(missing)}; see lite_core/backend.py")
    if not isinstance(thing.name, str) or not thing.name:
        raise InputError(f"{what} is not a backend: its name must be a text, is {thing.name!r}")


def _installed(name: str) -> tuple[Backend, PluginManager, str]:
    plugins = default_plugins()
    backends = available_backends(plugins)
    if name not in backends:
        known = ", ".join(sorted(backends))
        failed = [f"{r.label}: {r.error}" for r in plugins.records() if r.failed]
        meant = did_you_mean(name, backends)
        error = BackendUnavailableError(
            f"backend {name!r} is not installed{f'; {meant}' if meant else ''} (here are: {known})"
            + "".join(f"; plugin {line}" for line in failed)
            + ". A backend that is not installed can be named as module:attribute or file.py:attribute"
        )
        raise with_correction(error, name, similar_names(name, backends))
    owner = next((r.module for r, b in plugins.ask("lite_backends") if b is backends[name]), "lite_core.builtin")
    return backends[name], plugins, owner.partition(":")[0]


def _import(name: str) -> Any:
    if not name.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")
        with _input_errors(f"module {name!r}"):
            return importlib.import_module(name)
    path = Path(name)
    if not path.is_file():
        raise InputError(f"there is no file {name!r}")
    # A fixed module name: the file's own name may shadow a module that is needed, such as json.
    found = importlib.util.spec_from_file_location("backend_under_test", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[module.__name__] = module
    with _input_errors(f"file {name!r}"):
        found.loader.exec_module(module)
    return module


@contextmanager
def _input_errors(what: str) -> Iterator[None]:
    """Turn any exception of an import into an InputError with its file and line."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        *_, frame = traceback.extract_tb(error.__traceback__)
        raise InputError(
            f"{what} cannot be used: {type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
        ) from error
