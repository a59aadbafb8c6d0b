"""Scopes of names: the item of each name in a graph and its enclosing graphs, or in a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lite_onnx.lowering.node import Item

__all__ = ["FunctionKey", "Scope"]

#: Domain, name and overload of a function.
FunctionKey = tuple[str, str, str]


class Scope:
    """The names of one graph, body or function.

    Args:
        opsets: the version of each operator set that the nodes are written for, by domain.
        outer: the scope of the graph that encloses a body; None for a model's graph and for functions.
        attributes: the attributes of a function in this call, as messages by name.
        caller: the scope of the node that calls this function; its names are not visible here.
        function: the key of this function.
        name_prefix: precedes names of nodes in messages: ``"layer/"`` in the function that the node ``layer`` calls.
        weight: the depth that this scope adds to that of its enclosing one.

    Attributes:
        depth: the sum of the weights of this scope and the enclosing graphs and callers.
        functions: the keys of this function and its callers, to detect recursion.
        sizes: the third size that the model declares for its inputs and outputs of at least three dimensions.
        failed: outputs of nodes that could not be lowered, and of nodes that depend on them.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        outer: Scope | None = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        caller: Scope | None = None,
        function: FunctionKey | None = None,
        name_prefix: str = "",
        weight: int = 1,
    ) -> None:
        parent = outer or caller
        self.opsets = opsets
        self.attributes: Mapping[str, Any] = attributes or (outer.attributes if outer else {})
        self.depth: int = parent.depth + weight if parent else 0
        self.functions: tuple[FunctionKey, ...] = parent.functions if parent else ()
        if function is not None:
            self.functions += (function,)
        self.name_prefix: str = name_prefix or (outer.name_prefix if outer else "")
        self.sizes: Mapping[str, int | str] = {}
        self.failed: set[str] = set()
        self._outer = outer
        self._items: dict[str, Item] = {}
        self._deferred: dict[str, Callable[[], Item]] = {}

    def bind(self, name: str, item: Item) -> None:
        """Bind a name to an item."""
        self._items[name] = item

    def bind_later(self, name: str, make: Callable[[], Item]) -> None:
        """Bind a name to an item that is created when it is first looked up."""
        self._deferred[name] = make

    def is_fixed_cache(self, past: str, present: str) -> bool:
        """Return True if the model's input ``past`` and output ``present`` are declared to have equal lengths."""
        return past in self.sizes and self.sizes[past] == self.sizes.get(present)

    def defines(self, name: str) -> bool:
        """Return True if the name is bound in this scope itself."""
        return name in self._items or name in self._deferred

    def knows(self, name: str) -> bool:
        """Return True if the name is bound here or in an enclosing graph, or has failed."""
        if self.defines(name) or name in self.failed:
            return True
        return self._outer is not None and self._outer.knows(name)

    def has_failed(self, name: str) -> bool:
        """Return True if the name is of a node that could not be lowered, or of a tensor that could not be read."""
        if name in self.failed:
            return True
        return not self.defines(name) and self._outer is not None and self._outer.has_failed(name)

    def find(self, name: str) -> Item | None:
        """Return the item of a name, or None if the name is not bound.

        Raises:
            Exception: a deferred item could not be created; the name counts as failed from then on.
        """
        make = self._deferred.pop(name, None)
        if make is not None:
            try:
                self._items[name] = make()
            except Exception:
                self.failed.add(name)
                raise
        item = self._items.get(name)
        return self._outer.find(name) if item is None and self._outer is not None and name not in self.failed else item
