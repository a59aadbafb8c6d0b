"""Precision by node: patterns of node names, each with the type that a backend may compute these nodes in."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from lite_core.checks import require
from lite_core.ir import Graph
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement, require_matches

__all__ = ["PRECISIONS", "Precision"]

#: The types that backends may be allowed to compute in.
PRECISIONS = ("float32", "float16", "bfloat16")


class Precision(NamedTuple):
    """The precision of every node, see ``precision`` of :func:`lite_core.load`.

    Attributes:
        default: the precision of nodes that no pattern matches.
        patterns: pairs of a node name pattern and a precision; the first one that matches a node decides.
    """

    default: str = "float32"
    patterns: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(given: object) -> Precision:
        """Return the precision that a caller gives, or that :attr:`text` wrote into a file.

        Raises:
            InputError: it is neither a precision nor a mapping of node name patterns to precisions.
        """
        mapping: Any = given
        if isinstance(given, str):
            mapping = {"*": given}
            if given.startswith("{"):
                import json  # not at the top: few files need it

                with suppress(ValueError, RecursionError):
                    mapping = json.loads(given)
        fits = isinstance(mapping, Mapping) and {type(t) for pair in mapping.items() for t in pair} <= {str}
        wanted = f"one of {', '.join(PRECISIONS)}, or a mapping of node name patterns to them"
        require(fits and {*mapping.values()} <= {*PRECISIONS}, "precision", wanted, given)
        found: dict[str, str] = {"*": "float32", **mapping}
        return Precision(found.pop("*"), tuple(found.items()))

    @property
    def text(self) -> str:
        """The precision as a text, for files and messages."""
        if not self.patterns:
            return self.default
        import json

        return json.dumps({**dict(self.patterns), "*": self.default})

    def check(self, graph: Graph) -> None:
        """Raise an InputError if a pattern matches no node of the graph or of its sub-graphs."""
        require_matches(graph, (pattern for pattern, _ in self.patterns), "precision names")

    def of_node(self, node: str) -> str:
        """Return the precision of the node with this name."""
        return next((found for p, found in self.patterns if fnmatch.fnmatchcase(node, p)), self.default)

    def variant(self, candidate: Candidate, node: str) -> Candidate:
        """Return the candidate with the precision of a node; the same candidate for the default, and for ``host``."""
        precision = self.of_node(node)
        if precision == self.default or candidate.device.backend == "host":
            return candidate
        return candidate._replace(changes=MappingProxyType({"precision": precision}))

    def applied(self, graph: Graph, placement: Placement) -> Placement:
        """Return the placement with a candidate of its own for each precision of a device's nodes."""
        if not self.patterns:
            return placement
        chosen = [self.variant(placement.candidates[i], node.name) for i, node in zip(placement.choice, graph.nodes)]
        candidates = [*placement.candidates]
        candidates += [c for number, c in enumerate(chosen) if c not in candidates and c not in chosen[:number]]
        return replace(placement, candidates=tuple(candidates), choice=tuple(map(candidates.index, chosen)))
