"""Fusing Gelu written out in arithmetic into one node."""

from __future__ import annotations

import math

from lite_core.ir import Attribute, DType, Node
from lite_core.passes.polynomial import Polynomial, is_close, match_polynomial
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["GeluFusion"]

_RESULT: Polynomial = {(1, 0): 0.5, (1, 1): 0.5}
_TANH_SCALE = math.sqrt(2 / math.pi)
# The argument of each function that a Gelu is written with, and the attributes of that Gelu.
_FORMS: dict[str, tuple[Polynomial, dict[str, Attribute]]] = {
    "Erf": ({(1, 0): math.sqrt(0.5)}, {}),
    "Tanh": ({(1, 0): _TANH_SCALE, (3, 0): _TANH_SCALE * 0.044715}, {"approximate": "tanh"}),
}


class GeluFusion(ScopePass):
    """Pass that recognises the Gaussian error linear unit (https://arxiv.org/abs/1606.08415).

    Rules:
        1. ``0.5 x (1 + erf(x / sqrt(2)))`` -> Gelu.
        2. ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`` -> Gelu, approximate "tanh".

    Factors and terms may be grouped and ordered in any way; divisions and powers may be written as products.
    Intermediate values must have no other users.
    """

    name = "gelu_fusion"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op in _FORMS:
                _fuse(scope, node, *_FORMS[node.qualified_op])


def _fuse(scope: Scope, node: Node, wanted: Polynomial, attributes: dict[str, Attribute]) -> None:
    def accepts(inner: Polynomial, result: Polynomial, dtype: DType) -> bool:
        return is_close(inner, wanted, dtype) and is_close(result, _RESULT, dtype)

    if (match := match_polynomial(scope, (node,), node.inputs[0], accepts)) is not None:
        scope.substitute(match.nodes, "Gelu", [match.source], attributes)
