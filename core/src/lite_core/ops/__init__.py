"""The opset: ONNX's operators of opset 22 and those of decoders from opsets 23 and 24 in the default domain, and
further operators in the domain ``lite``.

The module of an operator's family declares all of it: signature, type and shape inference with symbols,
and NumPy reference. Modules of families are imported when the first look-up needs them.

For authors of plugins, this module, :mod:`~lite_core.ops.inference`, :mod:`~lite_core.ops.dtypes`,
:mod:`~lite_core.ops.evaluate`, :mod:`~lite_core.ops.infer` and :mod:`~lite_core.ops.helpers` are public.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lite_core.errors import GraphError, LiteError
from lite_core.ir import Graph, Node, verify_structure
from lite_core.ops.lookup import all_ops, find
from lite_core.ops.missing import left_out, suspects, why_missing
from lite_core.ops.registry import (
    AttributeSpec,
    OpDef,
    Parameter,
    choice,
    define,
    op,
    optional,
    providers,
    register,
    required,
)

__all__ = [
    "IMPURE_OPS",
    "OPSET_VERSION",
    "AttributeSpec",
    "OpDef",
    "Parameter",
    "add",
    "all_ops",
    "attributes_of",
    "choice",
    "define",
    "find",
    "get",
    "left_out",
    "op",
    "optional",
    "required",
    "suspects",
    "verify",
    "verify_result",
    "why_missing",
]

OPSET_VERSION = 22

#: Operators whose results differ from run to run.
IMPURE_OPS = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


def get(node: Node) -> OpDef:
    """Return the operator of a node. Raises GraphError if the opset does not have it."""
    definition = find(node.op, node.domain)
    if definition is None:
        raise GraphError(f"{node.describe()}: {why_missing(node.op, node.domain)}")
    return definition


def attributes_of(node: Node) -> dict[str, Any]:
    """Return the attributes of a node, with the operator's defaults for those it does not set.

    An optional attribute without a default is None. Raises GraphError if the opset does not have the operator.
    """
    return get(node).attributes_of(node)


def add(definition: OpDef, provider: tuple[str, str] | None = None) -> None:
    """Add a plugin's operator to the opset; adding the same definition again has no effect.

    Args:
        definition: the operator.
        provider: the distribution and version of the plugin, for messages.
    """
    if find(definition.name, definition.domain) is not definition:
        register(definition)
    if provider is not None:
        providers[definition.domain] = provider


def verify(graph: Graph) -> None:
    """Check a graph's structure and every node against its operator's signature.

    Raises:
        GraphError: lists every problem found.
    """

    def check(node: Node) -> Iterator[str]:
        definition = find(node.op, node.domain)
        if definition is None:
            yield str(why_missing(node.op, node.domain))
        else:
            yield from definition.check(node)

    verify_structure(graph, check)


def verify_result(graph: Graph, whose: str, kind: type[LiteError]) -> None:
    """Check a graph that a reader or a pass has returned.

    Args:
        graph: the graph.
        whose: the beginning of the message: "pass 'fuse' left".
        kind: the class of the error.

    Raises:
        LiteError: of the class ``kind``; lists every problem found.
    """
    try:
        verify(graph)
    except GraphError as problem:
        raise kind(f"{whose} a graph that is not valid: {problem}") from problem
