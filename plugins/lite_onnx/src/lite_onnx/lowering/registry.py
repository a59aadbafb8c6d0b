"""What there is for an operator: adapters from older versions, and lowerings.

Most operators need neither: Lite's operators are ONNX's of opset 22, so a node is taken as it is. For others

* an adapter brings a node of an older version to what the next version means. It changes the node in place, or does
  the whole of it and returns its outputs::

      @adapts("Clip", until=10)
      def limits_as_inputs(node: SourceNode, context: Context) -> None:
          ...

* a lowering expresses an operator that Lite has not by those that it has::

      @lowers("FusedMatMul", domain="com.microsoft")
      def fused_matmul(node: SourceNode, context: Context) -> list[Item]:
          ...

What cannot be expressed raises :class:`Unlowerable`; the other nodes are still looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lite_onnx.lowering.context import Context
    from lite_onnx.lowering.node import Item, SourceNode

__all__ = ["Adapter", "Reported", "Unlowerable", "adapters", "adapts", "find_lowering", "lowered_operators", "lowers"]

#: The modules that register adapters and lowerings, by the domain whose nodes ask for them; others ask for the first.
_FAMILIES = {
    "": ("versions", "constants", "sequences", "control_flow", "signals", "newer", "microsoft"),
    "ai.onnx.ml": ("machine_learning",),
}

Adapt = Callable[["SourceNode", "Context"], "Sequence[Item] | None"]
Lower = Callable[["SourceNode", "Context"], "Sequence[Item]"]


class Unlowerable(Exception):
    """A node of the model cannot be expressed; ``reason`` and ``remedy`` are for the user."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class Reported(Unlowerable):
    """As :class:`Unlowerable`, for a node whose graph or function holds what cannot be: that is among the problems."""


class Adapter(NamedTuple):
    """What brings nodes up to version ``until`` of their operator set to the meaning of the next version."""

    op: str
    domain: str
    until: int
    adapt: Adapt


_adapters: dict[tuple[str, str], list[Adapter]] = {}
_lowerings: dict[tuple[str, str], Lower] = {}
_loaded: set[str] = set()


def adapts(*names: str, until: int, domain: str = "") -> Callable[[Adapt], Adapt]:
    """Register an adapter for operators of a model whose operator set has at most the version ``until``."""

    def register(function: Adapt) -> Adapt:
        for name in names:
            known = _adapters.setdefault((domain, name), [])
            known.append(Adapter(name, domain, until, function))
            known.sort(key=lambda adapter: adapter.until)
        return function

    return register


def lowers(*names: str, domain: str = "") -> Callable[[Lower], Lower]:
    """Register a lowering for operators, of the newest version."""

    def register(function: Lower) -> Lower:
        for name in names:
            if (domain, name) in _lowerings:
                raise ValueError(f"operator {name!r} of domain {domain!r} is lowered twice")
            _lowerings[domain, name] = function
        return function

    return register


def adapters(op: str | None = None, domain: str = "") -> list[Adapter]:
    """Those of an operator, the oldest version first; all of them when no operator is given."""
    if op is None:
        _load(*_FAMILIES)
        return [adapter for known in _adapters.values() for adapter in known]
    _load("", domain)
    return _adapters.get((domain, op), [])


def find_lowering(op: str, domain: str) -> Lower | None:
    """The lowering of an operator, if it has one."""
    _load("", domain)
    return _lowerings.get((domain, op))


def lowered_operators() -> list[tuple[str, str]]:
    """Domain and name of every operator that is lowered, sorted."""
    _load(*_FAMILIES)
    return sorted(_lowerings)


def _load(*domains: str) -> None:
    for domain in domains:
        if domain not in _loaded:
            for family in _FAMILIES.get(domain, ()):
                import_module(f"lite_onnx.lowering.{family}")
            _loaded.add(domain)
