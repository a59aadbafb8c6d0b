"""Lowering of the nodes of graphs, bodies and functions, which collects all problems."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto, defs

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError, ModelFormatError
from lite_core.ir import DType, Graph, Origin, TensorType, Value
from lite_onnx.lowering.attributes import attributes_for, read_attributes
from lite_onnx.lowering.constants import add_constant
from lite_onnx.lowering.context import LOOP_WEIGHT, Context
from lite_onnx.lowering.expansion import MAX_DEPTH, MAX_NODES
from lite_onnx.lowering.functions import call, schema_function
from lite_onnx.lowering.interface import add_outputs, tensor_type
from lite_onnx.lowering.lists import ListType, dynamic, list_input
from lite_onnx.lowering.node import Item, SourceNode, TensorList
from lite_onnx.lowering.operators import adapters, find_lowering, is_known_domain
from lite_onnx.lowering.opsets import check_version
from lite_onnx.lowering.order import in_order
from lite_onnx.lowering.registry import Adapter
from lite_onnx.lowering.scope import FunctionKey, Scope
from lite_onnx.lowering.unlowerable import AlreadyReported, Unlowerable
from lite_onnx.reader.element_types import UnsupportedElementType
from lite_onnx.reader.external_data import ExternalFiles
from lite_onnx.reader.stored_tensors import StoredTensors
from lite_onnx.reader.tensors import read_sparse_tensor, read_tensor

__all__ = ["GraphLowering", "Problem"]

logger = logging.getLogger("lite.onnx")

Array = np.ndarray[Any, Any]

#: Operators whose number of outputs is the node's number of names, including omitted ones at the end.
_FIXED_OUTPUT_COUNT = ("If", "Loop", "Scan", "Split")

_SCALARS = (TensorType(DType.INT64, ()), TensorType(DType.BOOL, ()))

#: The maximum number of bytes of constants, besides those of the file, that functions and loops are expanded to.
_MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class Problem:
    """A node that could not be lowered, or a tensor that could not be read.

    Attributes:
        op: the node's operator; ``initializer`` for a tensor.
        name: the name of the node or tensor.
        reason: the cause, for the user.
        remedy: advice for the user.
        is_damage: True if the file is damaged; False if Lite lacks support.
    """

    op: str
    name: str
    reason: str
    remedy: str = ""
    is_damage: bool = False


class GraphLowering:
    """Lowering of the graphs of one model.

    Args:
        path: the model's file, for messages and to find tensors in other files.
        functions: the functions that the model defines.
        size: the size in bytes of the message, which limits the size of the model's constants.
        stored: the large tensors inside the model's file; None if the message has them.
    """

    def __init__(
        self,
        path: Path,
        functions: Mapping[FunctionKey, FunctionProto],
        size: int = 0,
        stored: StoredTensors | None = None,
    ) -> None:
        self.path = path
        self.functions = functions
        self.problems: list[Problem] = []
        self._files = ExternalFiles(path)
        self._nodes_left = MAX_NODES
        self._size = size if stored is None else stored.total_bytes
        self._stored = stored
        self._bytes = 0
        #: The node of the model's own graph that is being lowered, for messages.
        self.position = ""

    # **** graphs ****

    def lower_graph(self, graph: GraphProto, context: Context) -> list[Item]:
        """Add a graph's constants, nodes and outputs to the context's builder. Its inputs must be bound before.

        Returns:
            The items of its outputs. Sequences of a body are dynamic.
        """
        items: list[Item] = []
        self._bind_constants(graph, context)
        names = [output.name for output in graph.output]
        if context.scope.depth == 0:
            names = list(dict.fromkeys(names))  # a model's outputs are identified by name
            self._nodes_left += len(graph.node)
        self.lower_nodes(graph.node, names, context)
        for name in names:
            item = self._lookup(name, context.scope, f"the output {name!r} of graph {graph.name!r}")
            if item is None:
                continue
            if context.scope.depth and isinstance(item, TensorList):
                item = dynamic(item, context.builder)
            # The names of a body's outputs do not matter, and may clash with those of the enclosing graph.
            add_outputs("" if context.scope.depth else name, item, context.builder)
            items.append(item)
        return items

    def body(
        self, graph: GraphProto, inputs: Sequence[TensorType | None], context: Context, weight: int = LOOP_WEIGHT
    ) -> Graph:
        """Lower a graph attribute to a separate graph; see :meth:`list_body`."""
        return self.list_body(graph, inputs, context, weight)[0]

    def list_body(
        self,
        graph: GraphProto,
        inputs: Sequence[TensorType | ListType | None],
        context: Context,
        weight: int = LOOP_WEIGHT,
    ) -> tuple[Graph, list[Item]]:
        """Lower a graph attribute to a separate graph, which may use values of the enclosing graphs.

        Args:
            graph: the attribute.
            inputs: types of its inputs, used where the graph does not state them. A sequence becomes two inputs.
            context: the node's context.
            weight: the depth that it counts for.

        Returns:
            The graph, and the items of its outputs. A sequence is two outputs of the graph.

        Raises:
            AlreadyReported: a node of the graph cannot be lowered.
        """
        inner = context.inner(graph.name or "body", weight=weight)
        builder, scope = inner.builder, inner.scope
        for value, known in itertools.zip_longest(graph.input, inputs[: len(graph.input)]):
            if isinstance(known, ListType):
                scope.bind(value.name, list_input(value.name, known, builder))
                continue
            is_stated = value.type.WhichOneof("value") is not None or known is None
            scope.bind(value.name, _body_input(value, None if is_stated else known, builder))
        before = len(self.problems)
        items = self.lower_graph(graph, inner)
        self._raise_if_failed(graph, scope, before)
        return builder.build(), items

    def inline(self, graph: GraphProto, items: Sequence[Item | None], context: Context) -> list[Item]:
        """Add the nodes of a graph to the enclosing graph and return its outputs.

        Raises:
            AlreadyReported: a node of the graph cannot be lowered.
        """
        scope = Scope(context.scope.opsets, context.scope)
        for value, item in zip(graph.input, items):
            if item is not None:
                scope.bind(value.name, item)
        inner = context.with_scope(scope)
        before = len(self.problems)
        self._bind_constants(graph, inner)
        self.lower_nodes(graph.node, [output.name for output in graph.output], inner)
        found = [self._lookup(o.name, scope, f"the output {o.name!r} of graph {graph.name!r}") for o in graph.output]
        self._raise_if_failed(graph, scope, before)
        return [item for item in found if item is not None]

    def _raise_if_failed(self, graph: GraphProto, scope: Scope, before: int) -> None:
        if len(self.problems) > before or any(scope.has_failed(output.name) for output in graph.output):
            raise AlreadyReported("nodes of its graph cannot be lowered")

    def _bind_constants(self, graph: GraphProto, context: Context) -> None:
        scope, builder = context.scope, context.builder
        seen: set[str] = set()

        def bind(name: str, read: Callable[[], Array]) -> None:
            def make() -> Item:
                # NOTE: the name may be taken: bodies may reuse names of the enclosing graphs.
                is_taken = not name or builder.is_taken(name)
                array = read()
                return add_constant(builder, array, builder.unique_name(name or "const") if is_taken else name)

            if name in seen:
                logger.warning("%s: the initializer %r occurs twice; the last one is used", self.path, name)
            elif scope.defines(name):  # the reader's options or the calling node override the initializer
                return
            seen.add(name)
            scope.bind_later(name, make)

        for tensor in graph.initializer:
            bind(tensor.name, lambda tensor=tensor: self.read(tensor))  # type: ignore[misc]
        for sparse in graph.sparse_initializer:
            bind(sparse.values.name, lambda sparse=sparse: self.read(sparse))  # type: ignore[misc]

    def read(self, tensor: TensorProto | SparseTensorProto) -> Array:
        """Return the elements of a tensor.

        Raises:
            ValueError: they cannot be read, or are not numbers.
        """
        is_sparse = isinstance(tensor, SparseTensorProto)
        array = read_sparse_tensor(tensor) if is_sparse else read_tensor(tensor, self._files, self._stored)
        self._bytes += array.nbytes
        stored = self._size + self._files.total_bytes
        if self._bytes > _MAX_BYTES + 2 * stored:
            raise ModelFormatError(
                f"model {str(self.path)!r} is damaged: its {stored} bytes contain too many copies of constants, "
                f"{self._bytes} bytes so far"
            )
        return array

    # **** nodes ****

    def lower_nodes(self, nodes: Sequence[NodeProto], wanted: Iterable[str], context: Context) -> None:
        """Lower the nodes that the wanted names depend on, and continue after failures to find every problem."""
        scope = context.scope
        if scope.depth > MAX_DEPTH:
            raise ModelFormatError(f"model {str(self.path)!r} is damaged: its graphs and functions are nested too deep")
        ordered = in_order(nodes, wanted, self.path)
        for number, node in enumerate(ordered, 1):
            if scope.depth == 0:
                self.position = f"node {number} of {len(ordered)}"
            self._nodes_left -= 1
            if self._nodes_left < 0:
                raise ModelFormatError(
                    f"model {str(self.path)!r} has functions or loops that expand to more than {MAX_NODES} nodes"
                )
            self._lower_one(node, context)

    def _lower_one(self, node: NodeProto, context: Context) -> None:
        scope = context.scope
        outputs = [name for name in node.output if name]
        name = f"{scope.name_prefix}{node.name or outputs[0]}"
        qualified = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        inputs = [self._lookup(i, scope, f"node {name!r}") if i else None for i in node.input]
        if any(scope.has_failed(i) for i in node.input if i):
            scope.failed.update(outputs)
            if missing := self._missing(node, scope):  # the one problem that can be told without the inputs
                self.problems.append(Problem(qualified, name, missing.reason, missing.remedy))
            return
        before = len(self.problems)
        origin, context.builder.origin = context.builder.origin, Origin(qualified, name)
        try:
            self._lower(node, inputs, name, context)
        except AlreadyReported:
            scope.failed.update(outputs)
        except Unlowerable as problem:
            self.problems.append(Problem(qualified, name, problem.reason, problem.remedy))
        except UnsupportedElementType as error:
            self.problems.append(Problem(qualified, name, str(error)))
        except GraphError as error:
            self.problems.append(Problem(qualified, name, f"it does not fit Lite's operators: {error}"))
        except LiteError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, AssertionError) as error:
            # Lowerings check their preconditions; this catches what a damaged file breaks nevertheless.
            logger.debug("%s %s", qualified, name, exc_info=True)
            reason = f"its attributes or inputs are damaged ({type(error).__name__}: {error})"
            self.problems.append(Problem(qualified, name, reason, "export the model again, or copy it again"))
        except MemoryError as error:  # a size in a damaged file
            self.problems.append(Problem(qualified, name, f"there is not enough memory for it: {error}"))
        finally:
            context.builder.origin = origin
        if len(self.problems) > before:
            scope.failed.update(outputs)

    def _lower(self, message: NodeProto, inputs: list[Item | None], name: str, context: Context) -> None:
        scope = context.scope
        domain = "" if message.domain == "ai.onnx" else message.domain
        outputs = list(message.output)
        while outputs and not outputs[-1] and message.op_type not in _FIXED_OUTPUT_COUNT:
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
        """Adapt a node from its version, lower it, and return its outputs.

        It is lowered by a registered lowering, as the operator of the same name and domain of Lite or a plugin, or by
        ONNX's own function.
        """
        check_version(node)
        done: set[Adapter] = set()
        while True:
            pending = (a for a in adapters(node.op, node.domain) if node.version <= a.until and a not in done)
            adapter = next(pending, None)
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
            weight = 1 if node.op == "If" else LOOP_WEIGHT
            attributes = attributes_for(definition, node, lambda _, graph: self.body(graph, inputs, context, weight))
            return context.add_node(
                node.op, context.values(node), attributes, outputs=len(node.outputs), domain=node.domain
            )
        function = schema_function(node)
        if function is not None:
            return call(function, node, node.inputs, node.name, context, self.lower_nodes)
        raise _no_lowering(node)

    def _missing(self, message: NodeProto, scope: Scope) -> Unlowerable | None:
        """Return why a node cannot be lowered whatever its inputs are; None if something lowers its operator."""
        domain = "" if message.domain == "ai.onnx" else message.domain
        if (domain, message.op_type, message.overload) in self.functions:
            return None
        version, outputs = scope.opsets.get(domain, 1), list(message.output)
        node = SourceNode(message.op_type, domain, version, [], outputs, {}, message.name)
        is_known = bool(find_lowering(node.op, domain) or adapters(node.op, domain)) or defs.has(node.op, domain)
        is_known = is_known or (domain != "lite" and ops.find(node.op, domain) is not None)
        return None if is_known else _no_lowering(node)

    def _lookup(self, name: str, scope: Scope, reader: str) -> Item | None:
        """Return the item of a name, or None if it could not be lowered or read; the failure is among the problems."""
        try:
            item = scope.find(name)
        except UnsupportedElementType as error:
            self.problems.append(Problem("initializer", name, str(error)))
            return None
        except (ValueError, OverflowError) as error:
            self.problems.append(Problem("initializer", name, str(error), _COPY_AGAIN, is_damage=True))
            return None
        if item is None and not scope.has_failed(name):
            raise ModelFormatError(
                f"model {str(self.path)!r} is damaged: {reader} reads {name!r}, which no node computes"
            )
        return item


_COPY_AGAIN = "copy the model again, with all the files beside it"


def _body_input(value: ValueInfoProto, known: TensorType | None, builder: GraphBuilder) -> Value:
    """Add an input of a body; ``known``: its type if the message does not state it."""
    type = known or tensor_type(f"the input {value.name!r} of its graph", value.type)
    return builder.input(builder.unique_name(value.name or "input"), type.dtype, type.shape)


def _no_lowering(node: SourceNode) -> Unlowerable:
    """Return the problem of an operator that lite-onnx, Lite's opset and ONNX's functions do not have."""
    if not is_known_domain(node.domain):
        return Unlowerable(*ops.why_missing(node.op, node.domain))
    meant = ops.why_missing(node.op, node.domain).remedy if not node.domain else ""
    reason = f"lite-onnx has no lowering for it (opset {node.version})"
    return Unlowerable(reason, meant if meant.startswith("did you mean") else "")
