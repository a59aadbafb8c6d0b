"""Functions of the user that prepare rows and turn outputs into columns, named as ``module:function``."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.errors import InputError

__all__ = ["Function"]


class Function(NamedTuple):
    """A function that can be imported.

    Attributes:
        name: ``module:function``.
        digest: the SHA-256 of the file of its module.
    """

    name: str
    digest: str

    @staticmethod
    def find(name: str, folder: str, option: str) -> Function:
        """Return the function of a name.

        Args:
            name: ``module:function``.
            folder: the folder to import from, besides the installed packages.
            option: the option that names it, for errors.

        Raises:
            InputError: the module cannot be imported, or has no such function.
        """
        _, digest = _imported(name, folder, option)
        return Function(name, digest)

    def load(self, folder: str, option: str) -> Callable[..., Any]:
        """Import the function.

        Raises:
            InputError: it cannot be imported, or its file differs from the one that the job was made with.
        """
        found, digest = _imported(self.name, folder, option)
        if digest != self.digest:
            raise InputError(
                f"{option} {self.name}: the module's file here differs from the one that the run was started with; "
                "every machine needs the same file"
            )
        return found


def _imported(name: str, folder: str, option: str) -> tuple[Callable[..., Any], str]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"{option} must be module:function, such as prepare:tokens, is {name!r}")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the module does when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{option} {name}: the module {module_name!r} cannot be imported: {reason}") from error
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        functions = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        listed = f"; it has {', '.join(functions)}" if functions else ""
        raise InputError(f"{option} {name}: the module {module_name!r} has no function {attribute!r}{listed}")
    file = getattr(module, "__file__", None)
    content = Path(file).read_bytes() if file else module_name.encode()
    return found, hashlib.sha256(content).hexdigest()
