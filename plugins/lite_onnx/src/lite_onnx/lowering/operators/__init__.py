"""Adapters and lowerings of operators, in a subpackage for each domain: ``ai_onnx_ml`` for ``ai.onnx.ml``.

The modules of a subpackage are imported when a model has a node of its domain. A new operator is one decorated function
in one of them (see :mod:`lite_onnx.lowering.registry`), a new domain is a new subpackage: there is no list to extend.
"""

from __future__ import annotations

import pkgutil
from functools import cache

from lite_onnx.lowering.registry import Adapter, Lower, registered_adapters, registered_lowerings
from lite_onnx.submodules import import_submodules

__all__ = ["adapters", "every_adapter", "find_lowering", "is_known_domain", "lowered_operators"]


def adapters(op: str, domain: str = "") -> list[Adapter]:
    """Return the adapters of an operator, oldest version first."""
    _import_domain(domain)
    return registered_adapters.get((domain, op), [])


def every_adapter() -> list[Adapter]:
    """Return the adapters of all operators."""
    _import_every_domain()
    return [adapter for known in registered_adapters.values() for adapter in known]


def find_lowering(op: str, domain: str) -> Lower | None:
    """Return the lowering of an operator, or None."""
    _import_domain(domain)
    return registered_lowerings.get((domain, op))


def is_known_domain(domain: str) -> bool:
    """Return True for the domains of ONNX and those in which lite-onnx has lowerings."""
    return domain in _folders() or domain.startswith("ai.onnx")


def lowered_operators() -> list[tuple[str, str]]:
    """Return domain and name of every operator that has a lowering, sorted."""
    _import_every_domain()
    return sorted(registered_lowerings)


@cache
def _folders() -> dict[str, str]:
    """Return the subpackage of each domain; ONNX's own domain is the empty string."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.ispkg]
    domains = {name.replace("_", "."): f"{__name__}.{name}" for name in names}
    return {"" if domain == "ai.onnx" else domain: package for domain, package in domains.items()}


@cache
def _import_package(package: str) -> None:
    import_submodules(package)


def _import_domain(domain: str) -> None:
    package = _folders().get(domain)  # a model may have nodes of any domain
    if package is not None:
        _import_package(package)


def _import_every_domain() -> None:
    for domain in _folders():
        _import_domain(domain)
