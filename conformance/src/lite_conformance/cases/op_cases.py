"""Operator cases: a table of hand-made ones for each operator, and drawn ones.

One line is one case::

    conv = table("Conv", SUM)
    conv("n1c3h8w8,o4,k3s2p1", t(1, 3, 8, 8), const(4, 3, 3, 3), strides=(2, 2), pads=(1, 1, 1, 1))

    @conv.drawn
    def _(draw, dtype):
        channels = draw(integers(1, 4))
        return conv.given(t(1, channels, draw(sizes), draw(sizes)), const(2, channels, 3, 3))

Each case runs in every element type the operator has, as ``Conv[f32,n1c3h8w8,o4,k3s2p1]``; the drawn ones as
``Conv[f32,drawn]``, a number of examples that hypothesis chooses and, where one fails, makes smaller.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lite_conformance.cases.tensors import Array, Tensor, short_name
from lite_conformance.judge.tolerances import EXACT, Numerics
from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops import OpDef

__all__ = ["Body", "Draw", "Drawer", "OpCase", "OpTable", "held_in_float32", "table", "table_of", "tables"]

#: Hypothesis' ``draw``: takes a strategy, gives a value.
Draw = Callable[[Any], Any]
Drawer = Callable[[Draw, DType], "OpCase"]
#: Fills a graph with its builder, the case's element type, and the values that it may capture.
BodyMaker = Callable[[GraphBuilder, DType, Sequence[Value]], None]


@dataclass(frozen=True, slots=True)
class Body:
    """A graph as an attribute: a branch of If, the body of Loop or Scan.

    Attributes:
        make: gives it its inputs, nodes and outputs.
    """

    make: BodyMaker


@dataclass(frozen=True, slots=True)
class OpCase:
    """One operator on given inputs with given attributes.

    Attributes:
        op: the operator.
        domain: its domain.
        label: what is special about the case.
        inputs: None for one left out.
        attributes: those that differ from their defaults; a :class:`Tensor` is made into an array, a
            :class:`Body` into a graph, a function is called with the case's element type.
        outputs: how many outputs the node has.
        numerics: how near the result must be.
        captured: values of the enclosing graph that the node does not take itself, for its bodies.
    """

    op: str
    domain: str
    label: str
    inputs: tuple[Tensor | None, ...]
    attributes: dict[str, Any]
    outputs: int
    numerics: Numerics
    captured: tuple[Tensor, ...] = ()

    def build(self, dtype: DType, seed: int) -> tuple[Graph, list[Array]]:
        """A graph of this one node, and arrays for its inputs; the same ones for the same seed."""
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

    def describe(self, dtype: DType) -> str:
        """The case in words: ``Add(float32[2, 3], float32[3])``."""
        given = [_described(tensor, dtype) for tensor in self.inputs]
        given += [f"captured {_described(tensor, dtype)}" for tensor in self.captured]
        given += [f"{k}={_shown(v)}" for k, v in self.attributes.items()]
        return f"{self.op}({', '.join(given)})"


class OpTable:
    """The cases of one operator; see the module's docstring.

    Args:
        op: the operator.
        numerics: how near results must be in floating types; others are always exact.
        domain: the operator's domain.
        dtypes: the element types that the cases are run in; those of the operator's main type variable
            when omitted: the one that an input shares with the first output, or else the first input's.
    """

    def __init__(
        self, op: str, numerics: Numerics = EXACT, *, domain: str = "", dtypes: Iterable[DType | str] | None = None
    ) -> None:
        definition = ops.find(op, domain)
        if definition is None:
            raise ValueError(f"the opset has no operator {domain or 'ai.onnx'}.{op}")
        self.definition = definition
        self.numerics = numerics
        self.dtypes = tuple(DType.of(d) for d in dtypes) if dtypes is not None else main_dtypes(definition)
        self._cases: list[tuple[OpCase, tuple[DType, ...]]] = []
        self._drawer: Drawer | None = None
        self._drawn_dtypes: tuple[DType, ...] = ()

    def given(
        self,
        *inputs: Tensor | None,
        outputs: int = 1,
        label: str = "drawn",
        captured: tuple[Tensor, ...] = (),
        **attributes: Any,
    ) -> OpCase:
        """A case that is not in the table: what a drawer returns."""
        definition = self.definition
        return OpCase(definition.name, definition.domain, label, inputs, attributes, outputs, self.numerics, captured)

    def __call__(
        self,
        label: str,
        *inputs: Tensor | None,
        outputs: int = 1,
        dtypes: Iterable[DType | str] | None = None,
        numerics: Numerics | None = None,
        captured: tuple[Tensor, ...] = (),
        **attributes: Any,
    ) -> None:
        """Add a case.

        Args:
            label: names the case among those of the operator.
            inputs: None for one left out.
            outputs: how many outputs the node has.
            dtypes: fewer element types than the table's, for a case that means nothing in the others.
            numerics: another kind than the table's.
            captured: values of the enclosing graph for the bodies among the attributes.
            attributes: of the node.
        """
        if any(case.label == label for case, _ in self._cases) or label == "drawn":
            raise ValueError(f"{self.definition.qualified_name} already has a case {label!r}")
        case = self.given(*inputs, outputs=outputs, label=label, captured=captured, **attributes)
        case = replace(case, numerics=numerics or self.numerics)
        chosen = self.dtypes if dtypes is None else tuple(DType.of(d) for d in dtypes)
        self._cases.append((case, tuple(d for d in chosen if d in self.dtypes)))

    def drawn(self, drawer: Drawer) -> Drawer:
        """Add the drawn cases; decorates the function that draws one."""
        return self.drawn_for(None)(drawer)

    def drawn_for(self, dtypes: Iterable[DType | str] | None) -> Callable[[Drawer], Drawer]:
        """As :meth:`drawn`, for these element types only."""

        def add(drawer: Drawer) -> Drawer:
            self._drawer = drawer
            self._drawn_dtypes = self.dtypes if dtypes is None else tuple(DType.of(d) for d in dtypes)
            return drawer

        return add

    def cases(self) -> Iterator[tuple[str, DType, OpCase]]:
        """Name, element type and case of every hand-made case."""
        for dtype in self.dtypes:
            for case, dtypes in self._cases:
                if dtype in dtypes:
                    yield self._name(dtype, case.label), dtype, case

    def drawers(self) -> Iterator[tuple[str, DType, Drawer]]:
        """Name, element type and drawer of the drawn cases."""
        if self._drawer is not None:
            for dtype in self._drawn_dtypes:
                yield self._name(dtype, "drawn"), dtype, self._drawer

    def _name(self, dtype: DType, label: str) -> str:
        return f"{self.definition.qualified_name}[{short_name(dtype)},{label}]"


_tables: dict[tuple[str, str], OpTable] = {}


def table(
    op: str, numerics: Numerics = EXACT, *, domain: str = "", dtypes: Iterable[DType | str] | None = None
) -> OpTable:
    """A new table, known to the suite. See :class:`OpTable`."""
    if (domain, op) in _tables:
        raise ValueError(f"operator {domain or 'ai.onnx'}.{op} already has a table")
    _tables[domain, op] = OpTable(op, numerics, domain=domain, dtypes=dtypes)
    return _tables[domain, op]


def table_of(op: str, domain: str = "") -> OpTable:
    """The table of an operator, for adding to it; its family must have been imported."""
    return _tables[domain, op]


def tables() -> Sequence[OpTable]:
    """The tables so far, in the order of the opset; :mod:`lite_conformance.cases.operators` has them all."""
    return [_tables[key] for key in sorted(_tables)]


def main_dtypes(definition: OpDef) -> tuple[DType, ...]:
    """The element types that an operator's cases are named after: those of its working type.

    Types of 8-bit floats and 4-bit integers are left to ONNX's own data: backends convert them, or leave it to host.
    """
    working = definition.working_type
    found = definition.types[working] if working in definition.types else (DType.of(working),)
    return tuple(dtype for dtype in found if not dtype.is_narrow)


def _attribute(attribute: Any, dtype: DType, random: np.random.Generator) -> Any:
    if isinstance(attribute, Tensor):
        return attribute.make(random, dtype)
    return attribute(dtype) if callable(attribute) else attribute


def held_in_float32(op: str, domain: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a node's attributes, defaults too, that float32 does not hold, as what it holds instead.

    ONNX's attributes are float32. In float64 the difference would show, and a backend that keeps them in either
    type is right.
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
    fill = getattr(tensor.fill, "__name__", "fill")
    kind = "" if fill in ("normal", "fill") else f" {fill}"
    return f"{constant}{tensor.dtype or dtype}{list(tensor.shape)}{kind}"


def _shown(attribute: Any) -> str:
    if isinstance(attribute, Tensor):
        return f"tensor{list(attribute.shape)}"
    if isinstance(attribute, Body):
        return attribute.make.__name__
    return getattr(attribute, "__name__", None) or str(attribute)
