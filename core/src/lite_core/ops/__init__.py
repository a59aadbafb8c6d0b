"""The opset: ONNX's operators at opset 22 in the default domain, and what ONNX lacks in ``lite``.

Every operator is declared in one place, its family's module: signature, type and shape inference
with symbols, and a NumPy reference. The modules are imported on the first look-up.
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

_FAMILIES = (
    "activation",
    "control",
    "detection",
    "lite_boxes",
    "lite_detection",
    "lite_priors",
    "lite_regions",
    "comparison",
    "cumulative",
    "determinant",
    "elementwise_binary",
    "elementwise_unary",
    "gather",
    "scatter",
    "generate",
    "grid_sample",
    "matmul",
    "einsum",
    "convolution",
    "transposed_convolution",
    "deformable_convolution",
    "movement",
    "padding",
    "slicing",
    "normalization",
    "pooling",
    "quantization",
    "recurrent",
    "reduction",
    "resize",
    "search",
    "shape",
    "softmax",
    "window",
)

_loaded = False


def _load() -> None:
    global _loaded
    if not _loaded:
        for family in _FAMILIES:
            import_module(f"lite_core.ops.{family}")
        _loaded = True


def find(op_type: str, domain: str = "") -> OpDef | None:
    """The operator, or None when the opset has no such one."""
    _load()
    return registry._registry.get((domain, op_type))


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
    _load()
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
