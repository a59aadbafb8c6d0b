"""Fusing ``x * Sigmoid(x)`` into one node."""

from __future__ import annotations

from lite_core.ir import DType, Node
from lite_core.passes.polynomial import Polynomial, is_close, match_polynomial
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["SwishFusion"]


class SwishFusion(ScopePass):
    """Pass that recognises Swish, also called SiLU (https://arxiv.org/abs/1710.05941).

    Rules:
        1. ``x Sigmoid(x)`` -> lite.Swish.
        2. ``x Sigmoid(beta x)`` for a constant beta -> lite.Swish with that beta (1.702 is the quick Gelu).

    Intermediate values must have no other users.
    """

    name = "swish_fusion"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op == "Sigmoid":
                _fuse(scope, node)


def _fuse(scope: Scope, node: Node) -> None:
    def accepts(inner: Polynomial, result: Polynomial, dtype: DType) -> bool:
        beta = inner.get((1, 0), 0.0)
        only_beta = beta != 0 and all(c == 0 for key, c in inner.items() if key != (1, 0))
        return only_beta and is_close(result, {(1, 1): 1.0}, dtype)

    if (match := match_polynomial(scope, (node,), node.inputs[0], accepts)) is not None:
        beta = match.argument[1, 0]
        attributes = {} if beta == 1 else {"beta": beta}
        scope.substitute(match.nodes, "Swish", [match.source], attributes, domain="lite")
