"""Operator cases: for each operator a table of hand-written cases, and functions that draw cases with hypothesis.

One line is one case::

    conv = table("Conv", SUM)
    conv("n1c3h8w8,o4,k3s2p1", t(1, 3, 8, 8), const(4, 3, 3, 3), strides=(2, 2), pads=(1, 1, 1, 1))

    @conv.drawn
    def _(draw, dtype):
        channels = draw(integers(1, 4))
        return conv.case(t(1, channels, draw(sizes), draw(sizes)), const(2, channels, 3, 3))

Each case runs in every element type of the operator, as ``Conv[f32,n1c3h8w8,o4,k3s2p1]``. ``Conv[f32,drawn]`` runs
a number of examples that hypothesis draws; where one fails, hypothesis shrinks it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lite_conformance.cases.tensors import Array, Tensor, short_name
from lite_conformance.judge.compare import Expected
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.tolerances import EXACT, Numerics
from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops import OpDef

__all__ = [
    "Body",
    "Draw",
    "Drawer",
    "OpCase",
    "OpTable",
    "Unspecified",
    "held_in_float32",
    "main_dtypes",
    "registered_tables",
    "table",
    "table_of",
    "tables",
]

#: Hypothesis' ``draw``: takes a strategy and returns a value.
Draw = Callable[[Any], Any]
Drawer = Callable[[Draw, DType], "OpCase"]
#: Builds a graph from its builder, the case's element type, and the values that it may capture.
BodyMaker = Callable[[GraphBuilder, DType, Sequence[Value]], None]
#: Takes the arrays of a node's inputs, and returns True for each element of its first output that may have any value.
Unspecified = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Body:
    """A graph as an attribute: a branch of If, or the body of Loop or Scan.

    Attributes:
        make: adds the inputs, nodes and outputs of the graph.
    """

    make: BodyMaker


@dataclass(frozen=True, slots=True)
class OpCase:
    """One operator with its inputs and attributes.

    Attributes:
        op: the operator.
        domain: its domain.
        label: describes what the case tests.
        inputs: its inputs; None for an omitted one.
        attributes: the attributes that differ from their defaults; a :class:`Tensor` becomes an array, a
            :class:`Body` a graph, and a function is called with the case's element type.
        outputs: number of outputs of the node.
        numerics: the required accuracy.
        captured: values of the enclosing graph that only the bodies of the node use.
        unspecified: returns which elements of the first output are not compared, such as integers divided by zero;
            None if all are compared.
    """

    op: str
    domain: str
    label: str
    inputs: tuple[Tensor | None, ...]
    attributes: dict[str, Any]
    outputs: int
    numerics: Numerics
    captured: tuple[Tensor, ...] = ()
    unspecified: Unspecified | None = None

    def build(self, dtype: DType, seed: int) -> tuple[Graph, list[Array]]:
        """Return a graph of this one node, and arrays for its inputs; the same for the same seed."""
        random = np.random.default_rng([seed, zlib.crc32(self.describe(dtype).encode())])
        builder = GraphBuilder("case")
        arrays: list[Array] = []

        def operand(tensor: Tensor, name: str) -> Value:
            array = tensor.make(random, dtype)
            if tensor.constant:
                return builder.constant(array, f"constant_{name}")
            arrays.append(array)
            return builder.input(f"input_{name}", array.dtype, array.shape)

        operands = [None if tensor is None else operand(tensor, str(i)) for i, tensor in enumerate(self.inputs)]
        captured = [operand(tensor, f"captured_{i}") for i, tensor in enumerate(self.captured)]
        attributes: dict[str, Any] = {}
        for key, attribute in self.attributes.items():
            if isinstance(attribute, Body):
                body = GraphBuilder(key, outer=builder)
                attribute.make(body, dtype, captured)
                attributes[key] = body.build()
            else:
                attributes[key] = _attribute(attribute, dtype, random)
        if dtype is DType.FLOAT64:
            attributes.update(held_in_float32(self.op, self.domain, attributes))
        names = [f"output_{i}" for i in range(self.outputs)]
        results = builder.add_node(self.op, operands, attributes, domain=self.domain, outputs=names)
        for value in results:
            builder.output(value)
        return builder.build(), arrays

    def expect(self, graph: Graph, inputs: Sequence[Array]) -> list[Expected]:
        """Return the expected outputs of the graph that :meth:`build` returned, for these inputs."""
        expected = expect(graph, inputs, self.numerics)
        if self.unspecified is not None:
            known = {**graph.constants, **dict(zip(graph.inputs, inputs))}
            operands = [None if value is None else known[value] for value in graph.nodes[0].inputs]
            unspecified = np.broadcast_to(self.unspecified(*operands), expected[0].array.shape)
            expected[0] = replace(expected[0], unspecified=unspecified)
        return expected

    def describe(self, dtype: DType) -> str:
        """Return the case as text: ``Add(float32[2, 3], float32[3])``."""
        parts = [_described(tensor, dtype) for tensor in self.inputs]
        parts += [f"captured {_described(tensor, dtype)}" for tensor in self.captured]
        parts += [f"{k}={_shown(v)}" for k, v in self.attributes.items()]
        return f"{self.op}({', '.join(parts)})"


class OpTable:
    """The cases of one operator; see the module's docstring.

    Args:
        op: the operator.
        numerics: the required accuracy in floating types; results in other types must be exact.
        domain: the operator's domain.
        dtypes: the element types to run the cases in; when omitted, those of the operator's main type variable:
            the one that an input shares with the first output, or else the first input's.
    """

    def __init__(
        self, op: str, numerics: Numerics = EXACT, *, domain: str = "", dtypes: Iterable[DType | str] | None = None
    ) -> None:
        definition = ops.find(op, domain)
        if definition is None:
            raise ValueError(str(ops.why_missing(op, domain)))
        self.definition = definition
        self.numerics = numerics
        self.dtypes = tuple(DType.of(d) for d in dtypes) if dtypes is not None else main_dtypes(definition)
        self._cases: list[tuple[OpCase, tuple[DType, ...]]] = []
        self._drawer: Drawer | None = None
        self._drawn_dtypes: tuple[DType, ...] = ()
        self._completion: Callable[[OpTable], None] | None = None

    @property
    def is_of_plugin(self) -> bool:
        """True for an operator of a plugin: its domain is none of Lite's."""
        return self.definition.domain not in ("", "lite")

    def case(
        self,
        *inputs: Tensor | None,
        outputs: int = 1,
        label: str = "drawn",
        captured: tuple[Tensor, ...] = (),
        unspecified: Unspecified | None = None,
        **attributes: Any,
    ) -> OpCase:
        """Return a case without adding it to the table; used by drawers."""
        op, domain = self.definition.name, self.definition.domain
        return OpCase(op, domain, label, inputs, attributes, outputs, self.numerics, captured, unspecified)

    def __call__(
        self,
        label: str,
        *inputs: Tensor | None,
        outputs: int = 1,
        dtypes: Iterable[DType | str] | None = None,
        numerics: Numerics | None = None,
        captured: tuple[Tensor, ...] = (),
        unspecified: Unspecified | None = None,
        **attributes: Any,
    ) -> None:
        """Add a case.

        Args:
            label: name of the case, unique for the operator.
            inputs: inputs of the node; None for an omitted one.
            outputs: number of outputs of the node.
            dtypes: a subset of the table's element types, for a case that makes no sense in the others.
            numerics: required accuracy, if not the table's.
            captured: values of the enclosing graph for the bodies among the attributes.
            unspecified: returns which elements of the first output are not compared, given the arrays of the inputs.
            attributes: attributes of the node.
        """
        if any(case.label == label for case, _ in self._cases) or label == "drawn":
            raise ValueError(f"{self.definition.qualified_name} already has a case {label!r}")
        case = self.case(
            *inputs, outputs=outputs, label=label, captured=captured, unspecified=unspecified, **attributes
        )
        case = replace(case, numerics=numerics or self.numerics)
        chosen = self.dtypes if dtypes is None else tuple(DType.of(d) for d in dtypes)
        self._cases.append((case, tuple(d for d in chosen if d in self.dtypes)))

    def drawn(self, drawer: Drawer) -> Drawer:
        """Register the decorated function, which draws a case."""
        return self.drawn_for(None)(drawer)

    def drawn_for(self, dtypes: Iterable[DType | str] | None) -> Callable[[Drawer], Drawer]:
        """Return a decorator like :meth:`drawn`, for these element types only."""

        def add(drawer: Drawer) -> Drawer:
            self._drawer = drawer
            self._drawn_dtypes = self.dtypes if dtypes is None else tuple(DType.of(d) for d in dtypes)
            return drawer

        return add

    def complete_with(self, completion: Callable[[OpTable], None]) -> None:
        """Let a function add more cases when the cases are first asked for."""
        self._completion = completion

    def cases(self) -> Iterator[tuple[str, DType, OpCase]]:
        """Yield the name, element type and case of every hand-written case."""
        if self._completion is not None:
            completion, self._completion = self._completion, None
            completion(self)
        for dtype in self.dtypes:
            for case, dtypes in self._cases:
                if dtype in dtypes:
                    yield self._name(dtype, case.label), dtype, case

    def drawers(self) -> Iterator[tuple[str, DType, Drawer]]:
        """Yield the name, element type and drawer of the drawn cases."""
        if self._drawer is not None:
            for dtype in self._drawn_dtypes:
                yield self._name(dtype, "drawn"), dtype, self._drawer

    def _name(self, dtype: DType, label: str) -> str:
        return f"{self.definition.qualified_name}[{short_name(dtype)},{label}]"


_tables: dict[tuple[str, str], OpTable] = {}


def table(
    op: str, numerics: Numerics = EXACT, *, domain: str = "", dtypes: Iterable[DType | str] | None = None
) -> OpTable:
    """Create a table and register it with the suite. See :class:`OpTable`."""
    if (domain, op) in _tables:
        raise ValueError(f"operator {domain or 'ai.onnx'}.{op} already has a table")
    _tables[domain, op] = OpTable(op, numerics, domain=domain, dtypes=dtypes)
    return _tables[domain, op]


def table_of(op: str, domain: str = "") -> OpTable:
    """Return the table of an operator, to add cases to it; its module must have been imported."""
    return _tables[domain, op]


def registered_tables() -> dict[tuple[str, str], OpTable]:
    """Return the registry of tables itself, by domain and name of the operator."""
    return _tables


def tables() -> Sequence[OpTable]:
    """Return the tables registered so far, in the order of the opset.

    :mod:`lite_conformance.cases.operators` registers all of them.
    """
    return [_tables[key] for key in sorted(_tables)]


def main_dtypes(definition: OpDef) -> tuple[DType, ...]:
    """Return the element types that an operator's cases run in: the element types of its working type.

    8-bit floats and 4-bit integers are tested by ONNX's own data: backends convert them or leave them to host. Strings
    run on host only.
    """
    working = definition.working_type
    found = definition.types[working] if working in definition.types else (DType.of(working),)
    # A plugin may declare its types as texts.
    return tuple(dtype for dtype in map(DType.of, found) if not dtype.is_narrow and dtype is not DType.STRING)


def _attribute(attribute: Any, dtype: DType, random: np.random.Generator) -> Any:
    if isinstance(attribute, Tensor):
        return attribute.make(random, dtype)
    return attribute(dtype) if callable(attribute) else attribute


def held_in_float32(op: str, domain: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a node (defaults included) that float32 cannot represent, rounded to float32.

    ONNX's attributes are float32. A float64 case would show the difference, and backends may keep attributes in
    either type.
    """
    definition = ops.find(op, domain)
    rounded: dict[str, Any] = {}
    for key, spec in definition.attributes.items() if definition else ():
        attribute = attributes.get(key, spec.default)
        if spec.kind in ("float", "floats") and attribute is not None:
            held = np.asarray(attribute, np.float32).astype(np.float64)
            if (held != attribute).any():
                rounded[key] = float(held) if spec.kind == "float" else tuple(held.tolist())
    return rounded


def _described(tensor: Tensor | None, dtype: DType) -> str:
    if tensor is None:
        return "-"
    constant = "constant " if tensor.constant else ""
    # NOTE: the description seeds the case's random numbers: renaming a named initializer changes its data.
    name = getattr(tensor.initializer, "__name__", "initialize")
    kind = "" if name in ("normal", "initialize") else f" {name}"
    return f"{constant}{tensor.dtype or dtype}{list(tensor.shape)}{kind}"


def _shown(attribute: Any) -> str:
    if isinstance(attribute, Tensor):
        return f"tensor{list(attribute.shape)}"
    if isinstance(attribute, Body):
        return attribute.make.__name__
    return getattr(attribute, "__name__", None) or str(attribute)
