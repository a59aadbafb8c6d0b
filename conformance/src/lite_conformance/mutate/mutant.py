"""A mutant: an operator with one planted fault, and the call of its node that the fault changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, TensorType, Value
from lite_core.ops import OpDef
from lite_core.ops.evaluate import evaluate_graph, evaluate_op
from lite_core.ops.infer import GraphInference

__all__ = ["Array", "Compute", "Lines", "Mutant", "NodeCall", "Reference"]

Array = np.ndarray[Any, Any]
Reference = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node about to be computed.

    Attributes:
        definition: its operator.
        node: the node.
        inputs: an array for each input, None for one that is left out.
        attributes: its attributes, with defaults for those it does not set.
        constant: for each input, whether it is a constant of the graph.
        scope: values that the node's sub-graphs may capture.
    """

    definition: OpDef
    node: Node
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any]
    constant: Sequence[bool]
    scope: Mapping[Value, Array]

    @staticmethod
    def of(node: Node, definition: OpDef, known: Mapping[Value, Array], constants: Mapping[Value, Array]) -> NodeCall:
        """Return the call of a node, given the values known so far and the constants among them."""
        inputs = [None if v is None else _read_only(known[v]) for v in node.inputs]
        constant = [v in constants for v in node.inputs]
        return NodeCall(definition, node, inputs, definition.attributes_of(node), constant, known)

    def run(
        self,
        inputs: Sequence[Array | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        reference: Reference | None = None,
    ) -> list[Array]:
        """Compute the node with other inputs, attributes or another reference; by default its own."""
        inputs = self.inputs if inputs is None else inputs
        attributes = self.attributes if attributes is None else attributes
        definition = self.definition if reference is None else replace(self.definition, reference=reference)

        def run_graph(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
            return evaluate_graph(graph, arrays, self.scope)

        def infer_outputs() -> list[TensorType]:
            inference = GraphInference()
            captured = {v: self.scope[v] for v in self.node.captured()}
            for value, array in (*captured.items(), *zip(self.node.inputs, inputs)):
                if value is not None and array is not None:
                    inference.set_type(value, TensorType.of_array(array))
                    inference.set_value(value, array)
            return inference.infer(self.node)

        return evaluate_op(definition, inputs, attributes, len(self.node.outputs), run_graph, infer_outputs)


#: A file, and the first and the last of its lines that are meant.
Lines = tuple[str, int, int]

#: Computes the outputs of a node, with the fault.
Compute = Callable[[NodeCall], list[Array]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """An operator with one planted fault.

    Attributes:
        id: unique and stable: operator, function or operand, kind, and the changed text.
        op: the operator's qualified name.
        family: ``source``, ``behaviour`` or ``state``.
        kind: the kind of fault.
        level: the level that is expected to find it.
        make: builds the :data:`Compute` with the fault, or the backend. It may raise: a mutant that cannot be built
            counts as found.
        lines: the lines of the changed statement; a case that does not execute any of them cannot find the mutant.
    """

    id: str
    op: str
    family: str
    kind: str
    level: int
    make: Callable[[], Any]
    lines: Lines | None = None


def _read_only(array: Array) -> Array:
    view = np.asarray(array)[...]
    view.flags.writeable = False
    return view
