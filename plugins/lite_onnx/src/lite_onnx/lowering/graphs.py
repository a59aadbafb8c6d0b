"""Nodes of graphs, bodies and functions, one after another; what goes wrong is collected."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError, ModelFormatError
from lite_core.ir import DType, Graph, Origin, TensorType, Value
from lite_onnx.lowering.attributes import attributes_for, read_attributes
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.functions import call, schema_function
from lite_onnx.lowering.interface import add_outputs, tensor_type
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators import adapters, find_lowering
from lite_onnx.lowering.opsets import check_version
from lite_onnx.lowering.order import in_order
from lite_onnx.lowering.registry import Adapter
from lite_onnx.lowering.scope import FunctionKey, Scope
from lite_onnx.lowering.unlowerable import Reported, Unlowerable
from lite_onnx.reader.element_types import NotANumber
from lite_onnx.reader.external_data import ExternalFiles
from lite_onnx.reader.tensors import read_sparse_tensor, read_tensor

__all__ = ["GraphLowering", "Problem"]

logger = logging.getLogger("lite.onnx")

Array = np.ndarray[Any, Any]

#: What makes as many outputs as a node has names for, those that are left out at the end included.
_COUNTED = ("If", "Loop", "Scan", "Split")

_SCALARS = (TensorType(DType.INT64, ()), TensorType(DType.BOOL, ()))

#: Graphs and functions within one another. Deeper ones are a sign of a damaged model. The types in a loop are inferred
#: at least twice, so that each loop in a loop doubles the time: these weigh more.
_MOST_DEPTH, _LOOP = 40, 5
#: Nodes, beside those of the model's own graph, that functions and loops are written out to, and bytes of constants in
#: them: a short file can ask for any number by functions that call one another.
_MOST_NODES, _MOST_BYTES = 100_000, 1 << 28


@dataclass(frozen=True)
class Problem:
    """A node that could not be lowered, or a tensor that could not be read.

    Attributes:
        op: the node's operator; ``initializer`` for a tensor.
        name: the node's, or the tensor's.
        reason: why.
        remedy: what can be done.
        is_damage: whether this is the file's fault, not that of Lite.
    """

    op: str
    name: str
    reason: str
    remedy: str = ""
    is_damage: bool = False


class GraphLowering:
    """Lowers the graphs of one model.

    Args:
        path: the model's file, for messages and to find tensors in other files.
        functions: the model's own.
        size: how many bytes the model has; the constants that are made of it are not many more.
    """

    def __init__(self, path: Path, functions: Mapping[FunctionKey, FunctionProto], size: int = 0) -> None:
        self.path = path
        self.functions = functions
        self.problems: list[Problem] = []
        self._files = ExternalFiles(path)
        self._nodes_left = _MOST_NODES
        self._bytes_left = _MOST_BYTES + 2 * size

    # **** graphs ****

    def fill(self, graph: GraphProto, context: Context) -> None:
        """Add a graph's constants, nodes and outputs; its inputs are bound already."""
        self._bind_constants(graph, context)
        names = [output.name for output in graph.output]
        if context.scope.depth == 0:
            names = list(dict.fromkeys(names))  # outputs of a model are asked for by name
            self._nodes_left += len(graph.node)
        self.lower_nodes(graph.node, names, context)
        for name in names:
            item = self._found(name, context.scope, f"the output {name!r} of graph {graph.name!r}")
            if item is not None:
                # The names of a body's outputs are nobody's concern, and may be those of the graph around it.
                add_outputs("" if context.scope.depth else name, item, context.builder)

    def body(
        self, graph: GraphProto, inputs: Sequence[TensorType | None], context: Context, weight: int = _LOOP
    ) -> Graph:
        """A graph attribute as a graph of its own that may use what the graphs around it define.

        Args:
            graph: the attribute.
            inputs: types of its inputs where it does not say them itself.
            context: of the node.
            weight: how deep it counts.

        Raises:
            Reported: something inside cannot be lowered.
        """
        inner = context.inner(graph.name or "body", weight=weight)
        builder, scope = inner.builder, inner.scope
        for value, known in itertools.zip_longest(graph.input, inputs[: len(graph.input)]):
            is_said = value.type.WhichOneof("value") is not None or known is None
            scope.bind(value.name, _body_input(value, None if is_said else known, builder))
        before = len(self.problems)
        self.fill(graph, inner)
        self._raise_if_lost(graph, scope, before)
        return builder.build()

    def inline(self, graph: GraphProto, items: Sequence[Item | None], context: Context) -> list[Item]:
        """The outputs of a graph whose nodes are added to the graph around it.

        Raises:
            Reported: something inside cannot be lowered.
        """
        scope = Scope(context.scope.opsets, context.scope)
        for value, item in zip(graph.input, items):
            if item is not None:
                scope.bind(value.name, item)
        inner = context.with_scope(scope)
        before = len(self.problems)
        self._bind_constants(graph, inner)
        self.lower_nodes(graph.node, [output.name for output in graph.output], inner)
        found = [self._found(o.name, scope, f"the output {o.name!r} of graph {graph.name!r}") for o in graph.output]
        self._raise_if_lost(graph, scope, before)
        return [item for item in found if item is not None]

    def _raise_if_lost(self, graph: GraphProto, scope: Scope, before: int) -> None:
        if len(self.problems) > before or any(scope.is_lost(output.name) for output in graph.output):
            raise Reported("nodes of its graph cannot be lowered, see there")

    def _bind_constants(self, graph: GraphProto, context: Context) -> None:
        scope, builder = context.scope, context.builder
        seen: set[str] = set()

        def bind(name: str, read: Callable[[], Array]) -> None:
            def make() -> Item:
                # NOTE: a name of its own only where it is free: bodies may use names of the graphs around them.
                taken = not name or builder.is_taken(name)
                array = read()
                return builder.constant(array, builder.unique_name(name or "const") if taken else name)

            if name in seen:
                logger.warning("%s: the initializer %r is there twice; the last one is used", self.path, name)
            elif scope.defines(name):  # whoever reads the model, or calls the graph, says what it is
                return
            seen.add(name)
            scope.bind_later(name, make)

        for tensor in graph.initializer:
            bind(tensor.name, lambda tensor=tensor: self.read(tensor))  # type: ignore[misc]
        for sparse in graph.sparse_initializer:
            bind(sparse.values.name, lambda sparse=sparse: self.read(sparse))  # type: ignore[misc]

    def read(self, tensor: TensorProto | SparseTensorProto) -> Array:
        """The elements of a tensor.

        Raises:
            ValueError: they cannot be had, or are no numbers.
        """
        is_sparse = isinstance(tensor, SparseTensorProto)
        array = read_sparse_tensor(tensor) if is_sparse else read_tensor(tensor, self._files)
        if is_sparse or tensor.data_location != TensorProto.EXTERNAL:
            self._bytes_left -= array.nbytes
        if self._bytes_left < 0:
            raise ModelFormatError(
                f"model {str(self.path)!r} is damaged: its functions and loops make copies of constants without end"
            )
        return array

    # **** nodes ****

    def lower_nodes(self, nodes: Sequence[NodeProto], wanted: Iterable[str], context: Context) -> None:
        """Lower the nodes that wanted names need, going on after one that cannot be, to find every problem."""
        scope = context.scope
        if scope.depth > _MOST_DEPTH:
            raise ModelFormatError(f"model {str(self.path)!r} is damaged: graphs and functions are too deep in others")
        for node in in_order(nodes, wanted, self.path):
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise ModelFormatError(
                    f"model {str(self.path)!r} has functions or loops that become more than {_MOST_NODES} nodes when "
                    "they are written out"
                )
            self._lower_one(node, context)

    def _lower_one(self, node: NodeProto, context: Context) -> None:
        scope = context.scope
        made = [name for name in node.output if name]
        name = f"{scope.place}{node.name or made[0]}"
        qualified = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        inputs = [self._found(i, scope, f"node {name!r}") if i else None for i in node.input]
        if any(scope.is_lost(i) for i in node.input if i):
            scope.lost.update(made)
            return
        before = len(self.problems)
        origin, context.builder.origin = context.builder.origin, Origin(qualified, name)
        try:
            self._lower(node, inputs, name, context)
        except Reported:
            scope.lost.update(made)
        except Unlowerable as problem:
            self.problems.append(Problem(qualified, name, problem.reason, problem.remedy))
        except NotANumber as error:
            self.problems.append(Problem(qualified, name, str(error)))
        except GraphError as error:
            self.problems.append(Problem(qualified, name, f"it does not fit Lite's operators: {error}"))
        except LiteError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, AssertionError) as error:
            # Lowerings check what they rely on; what a damaged file still breaks ends here.
            logger.debug("%s %s", qualified, name, exc_info=True)
            reason = f"its attributes or inputs are damaged ({type(error).__name__}: {error})"
            self.problems.append(Problem(qualified, name, reason, "export the model again, or copy it again"))
        finally:
            context.builder.origin = origin
        if len(self.problems) > before:
            scope.lost.update(made)

    def _lower(self, message: NodeProto, inputs: list[Item | None], name: str, context: Context) -> None:
        scope = context.scope
        domain = "" if message.domain == "ai.onnx" else message.domain
        outputs = list(message.output)
        while outputs and not outputs[-1] and message.op_type not in _COUNTED:
            outputs.pop()
        node = SourceNode(
            message.op_type,
            domain,
            scope.opsets.get(domain, 1),
            inputs,
            outputs,
            read_attributes(message, scope.attributes, self.read),
            name,
        )
        function = self.functions.get((domain, message.op_type, message.overload))
        results: Sequence[Item | None]
        if function is None:
            results = self._apply(node, context)
        else:
            results = call(function, message, inputs, name, context, self.lower_nodes)
        for output, item in zip(outputs, results):
            if output and item is not None:
                if scope.defines(output):
                    raise ModelFormatError(f"model {str(self.path)!r} is damaged: {output!r} is computed twice")
                scope.bind(output, item)
                if isinstance(item, Value):
                    context.builder.rename(item, output)

    def _apply(self, node: SourceNode, context: Context) -> Sequence[Item | None]:
        """The outputs of a node: adapted from its version, then lowered, taken as it is, or by ONNX's own function."""
        check_version(node)
        done: set[Adapter] = set()
        while True:
            waiting = (a for a in adapters(node.op, node.domain) if node.version <= a.until and a not in done)
            adapter = next(waiting, None)
            if adapter is None:
                break
            done.add(adapter)
            results = adapter.adapt(node, context)
            if results is not None:
                return results
        lowering = find_lowering(node.op, node.domain)
        if lowering is not None:
            return lowering(node, context)
        definition = ops.find(node.op, node.domain)
        if definition is not None and node.domain != "lite":
            inputs: list[TensorType | None] = []
            if node.op == "Loop":
                inputs = [*_SCALARS, *(None if v is None else v.type for v in context.values(node)[2:])]
            weight = 1 if node.op == "If" else _LOOP
            attributes = attributes_for(definition, node, lambda _, graph: self.body(graph, inputs, context, weight))
            return context.add_node(node.op, context.values(node), attributes, outputs=len(node.outputs))
        function = schema_function(node)
        if function is not None:
            return call(function, node, node.inputs, node.name, context, self.lower_nodes)
        raise Unlowerable(f"lite-onnx has no lowering for it (opset {node.version})")

    def _found(self, name: str, scope: Scope, who: str) -> Item | None:
        """What a name stands for; None for one that could not be lowered or read, which is among the problems."""
        try:
            item = scope.find(name)
        except NotANumber as error:
            self.problems.append(Problem("initializer", name, str(error)))
            return None
        except (ValueError, OverflowError) as error:
            self.problems.append(Problem("initializer", name, str(error), _COPY_AGAIN, is_damage=True))
            return None
        if item is None and not scope.is_lost(name):
            raise ModelFormatError(f"model {str(self.path)!r} is damaged: {who} reads {name!r}, which nothing makes")
        return item


_COPY_AGAIN = "copy the model again, with all the files beside it"


def _body_input(value: ValueInfoProto, known: TensorType | None, builder: GraphBuilder) -> Value:
    """An input of a body; ``known``: its type, where the message does not say it."""
    type = known or tensor_type(f"the input {value.name!r} of its graph", value.type)
    return builder.input(builder.unique_name(value.name or "input"), type.dtype, type.shape)
