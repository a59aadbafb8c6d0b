"""Registry of lowerings, and of adapters from older versions of operators.

Most operators need neither: Lite's operators are those of ONNX's opset 22, and a node is used as it is. Otherwise

* an adapter converts a node of an older version to the meaning of the next version. It changes the node in place, or
  lowers it completely and returns its outputs::

      @adapts("Clip", until=10)
      def limits_as_inputs(node: SourceNode, context: Context) -> None:
          ...

* a lowering expresses an operator that Lite does not have by operators that it has::

      @lowers("FusedMatMul", domain="com.microsoft")
      def fused_matmul(node: SourceNode, context: Context) -> list[Item]:
          ...

They raise :class:`~lite_onnx.lowering.unlowerable.Unlowerable` for nodes that cannot be expressed. They are defined in
the modules of :mod:`lite_onnx.lowering.operators`, which finds them for a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode

__all__ = ["Adapt", "Adapter", "Lower", "adapts", "lowers", "registered_adapters", "registered_lowerings"]

Adapt = Callable[[SourceNode, Context], "Sequence[Item] | None"]
Lower = Callable[[SourceNode, Context], Sequence[Item]]


class Adapter(NamedTuple):
    """A function that converts nodes of operator set versions up to ``until`` to the meaning of the next version."""

    op: str
    domain: str
    until: int
    adapt: Adapt


#: The adapters of each operator, by domain and name, oldest version first.
registered_adapters: dict[tuple[str, str], list[Adapter]] = {}
#: The lowering of each operator, by domain and name.
registered_lowerings: dict[tuple[str, str], Lower] = {}


def adapts(*names: str, until: int, domain: str = "") -> Callable[[Adapt], Adapt]:
    """Register an adapter for operators of models whose operator set has at most the version ``until``."""

    def register(function: Adapt) -> Adapt:
        for name in names:
            known = registered_adapters.setdefault((domain, name), [])
            known.append(Adapter(name, domain, until, function))
            known.sort(key=lambda adapter: adapter.until)
        return function

    return register


def lowers(*names: str, domain: str = "") -> Callable[[Lower], Lower]:
    """Register a lowering for operators, in their newest version."""

    def register(function: Lower) -> Lower:
        for name in names:
            if (domain, name) in registered_lowerings:
                raise ValueError(f"operator {name!r} of domain {domain!r} is lowered twice")
            registered_lowerings[domain, name] = function
        return function

    return register
