"""Which item each name of the model stands for, in a graph and those around it, or in a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lite_onnx.lowering.node import Item

__all__ = ["FunctionKey", "Scope"]

#: Domain, name and overload of a function.
FunctionKey = tuple[str, str, str]


class Scope:
    """Names of one graph, body or function.

    Args:
        opsets: version of each operator set that nodes here are written for, by domain.
        outer: of the graph around a body; None for a model's graph and for functions.
        attributes: what the attributes of a function are in this call of it, as messages by name.
        caller: of the node that calls this function; its names are not seen here.
        function: which one this is.
        place: stands before names of nodes in messages: ``"layer/"`` in the function that the node ``layer`` calls.
        weight: how much deeper this is than what is around it.

    Attributes:
        depth: how many graphs and functions are around this one, each with its weight.
        functions: the functions around and this one, so that one that calls itself is found.
        lost: outputs of nodes that could not be lowered, and of those that need them.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        outer: Scope | None = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        caller: Scope | None = None,
        function: FunctionKey | None = None,
        place: str = "",
        weight: int = 1,
    ) -> None:
        around = outer or caller
        self.opsets = opsets
        self.attributes: Mapping[str, Any] = attributes or (outer.attributes if outer else {})
        self.depth: int = around.depth + weight if around else 0
        self.functions: tuple[FunctionKey, ...] = around.functions if around else ()
        if function is not None:
            self.functions += (function,)
        self.place: str = place or (outer.place if outer else "")
        self.lost: set[str] = set()
        self._outer = outer
        self._items: dict[str, Item] = {}
        self._waiting: dict[str, Callable[[], Item]] = {}

    def bind(self, name: str, item: Item) -> None:
        """Say what a name stands for."""
        self._items[name] = item

    def bind_later(self, name: str, make: Callable[[], Item]) -> None:
        """As :meth:`bind`; the item is made when it is first asked for, if ever."""
        self._waiting[name] = make

    def defines(self, name: str) -> bool:
        """Whether the name is this scope's own."""
        return name in self._items or name in self._waiting

    def knows(self, name: str) -> bool:
        """Whether the name stands for anything here, or is lost."""
        if self.defines(name) or name in self.lost:
            return True
        return self._outer is not None and self._outer.knows(name)

    def is_lost(self, name: str) -> bool:
        """Whether the name is of a node that could not be lowered, or of a tensor that cannot be read."""
        return name in self.lost or (not self.defines(name) and self._outer is not None and self._outer.is_lost(name))

    def find(self, name: str) -> Item | None:
        """What a name stands for; None where nothing here has it.

        Raises:
            Exception: it could not be made; from then on the name is lost.
        """
        make = self._waiting.pop(name, None)
        if make is not None:
            try:
                self._items[name] = make()
            except Exception:
                self.lost.add(name)
                raise
        item = self._items.get(name)
        return self._outer.find(name) if item is None and self._outer is not None and name not in self.lost else item
