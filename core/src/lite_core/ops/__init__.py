"""The opset: ONNX's operators at opset 22 in the default domain, and what ONNX lacks in ``lite``.

Every operator is declared in one place, its family's module: signature, type and shape inference
with symbols, and a NumPy reference. The modules are imported by the first look-ups that need them.
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
    "op",
    "optional",
    "required",
    "verify",
]

OPSET_VERSION = 22

#: The modules that define operators, those that most models need first.
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
    "lite_boxes",
    "lite_detection",
    "lite_priors",
    "lite_regions",
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
    "search",
    "window",
)


def find(op_type: str, domain: str = "") -> OpDef | None:
    """The operator, or None when the opset has no such one.

    Families are imported until one has it: a model waits only for those it uses and for more common ones.
    """
    key = (domain, op_type)
    for family in _FAMILIES:
        if key in registry._registry:
            break
        import_module(f"lite_core.ops.{family}")
    return registry._registry.get(key)


def get(node: Node) -> OpDef:
    """The operator of a node. Raises GraphError when the opset has no such one."""
    definition = find(node.op, node.domain)
    if definition is None:
        raise GraphError(
            f"{node.describe()}: the opset has no operator {node.qualified_op!r}; `lite ops` lists what it has"
        )
    return definition


def add(definition: OpDef) -> None:
    """Extend the opset, for plugins; adding the same definition again changes nothing."""
    if find(definition.name, definition.domain) is not definition:
        registry.register(definition)


def all_ops() -> Iterator[OpDef]:
    """Every operator, by domain and name."""
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
            yield f"the opset has no operator {node.qualified_op!r}"
        else:
            yield from definition.check(node)

    verify_structure(graph, check)
