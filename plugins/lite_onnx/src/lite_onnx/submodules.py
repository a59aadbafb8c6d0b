"""Import of all modules of a package, so that modules that register functions need not be listed."""

from __future__ import annotations

import pkgutil
from importlib import import_module

__all__ = ["import_submodules"]


def import_submodules(package: str) -> None:
    """Import the modules of a package and of its subpackages, in the order of their names."""
    for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        import_module(found.name)
        if found.ispkg:
            import_submodules(found.name)
