"""The opset: ONNX's operators of opset 22 and those of decoders from opsets 23 and 24 in the default domain, and
further operators in the domain ``lite``.

The module of an operator's family declares all of it: signature, type and shape inference with symbols,
and NumPy reference. Modules of families are imported when the first look-up needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from lite_core.errors import GraphError
from lite_core.ir import Graph, Node, verify_structure
from lite_core.ops import registry
from lite_core.ops.registry import AttributeSpec, OpDef, Parameter, choice, define, op, optional, required

__all__ = [
    "OPSET_VERSION",
    "AttributeSpec",
    "OpDef",
    "Parameter",
    "add",
    "all_ops",
    "choice",
    "define",
    "find",
    "get",
    "left_out",
    "op",
    "optional",
    "required",
    "verify",
]

OPSET_VERSION = 22

#: The modules that define operators, those with the most common operators first.
_FAMILIES = (
    "convolution",
    "activation",
    "elementwise_binary",
    "elementwise_unary",
    "normalization",
    "pooling",
    "matmul",
    "shape",
    "movement",
    "reduction",
    "softmax",
    "slicing",
    "gather",
    "resize",
    "quantization",
    "comparison",
    "control",
    "detection",
    "lite_beams",
    "lite_boxes",
    "lite_detection",
    "lite_forest",
    "lite_locality",
    "lite_priors",
    "lite_regions",
    "lite_sequences",
    "lite_statistics",
    "cumulative",
    "determinant",
    "scatter",
    "generate",
    "grid_sample",
    "einsum",
    "transposed_convolution",
    "deformable_convolution",
    "padding",
    "recurrent",
    "quantized_recurrent",
    "search",
    "window",
    "rms_normalization",
    "rotary",
    "attention",
    "cache_update",
    "fourier",
    "random_numbers",
    "ngrams",
    "strings",
    "tensor_lists",
)


#: Operators of plugins that the opset does not have, by their qualified names, with the reason.
left_out: dict[str, str] = {}


def find(op_type: str, domain: str = "") -> OpDef | None:
    """Return the operator, or None if the opset does not have it.

    Families are imported in order until one defines the operator, so rare families cost no import time. They define no
    operators of other domains, which are those of plugins.
    """
    key = (domain, op_type)
    for family in _FAMILIES if domain in ("", "lite") else ():
        if key in registry._registry:
            break
        import_module(f"lite_core.ops.{family}")
    return registry._registry.get(key)


def get(node: Node) -> OpDef:
    """Return the operator of a node. Raises GraphError if the opset does not have it."""
    definition = find(node.op, node.domain)
    if definition is None:
        raise GraphError(f"{node.describe()}: {_unknown(node)}; `lite ops` lists what it has")
    return definition


def _unknown(node: Node) -> str:
    name = node.qualified_op
    return f"the opset has no operator {name!r}" + (f": {left_out[name]}" if name in left_out else "")


def add(definition: OpDef) -> None:
    """Add a plugin's operator to the opset; adding the same definition again has no effect."""
    if find(definition.name, definition.domain) is not definition:
        registry.register(definition)


def all_ops() -> Iterator[OpDef]:
    """Iterate over all operators, sorted by domain and name."""
    for family in _FAMILIES:
        import_module(f"lite_core.ops.{family}")
    return iter(sorted(registry._registry.values(), key=lambda d: (d.domain, d.name)))


def verify(graph: Graph) -> None:
    """Check a graph's structure and every node against its operator's signature.

    Raises:
        GraphError: lists every problem found.
    """

    def check(node: Node) -> Iterator[str]:
        definition = find(node.op, node.domain)
        if definition is None:
            yield _unknown(node)
        else:
            yield from definition.check(node)

    verify_structure(graph, check)
