"""The context of a lowering: its graph builder and the Lite values of source values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import Attribute, Dim, DType, Value
from lite_paddle.lowering.arrays import AnyArray
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceValue

__all__ = ["Context", "LowerOperators"]

Array = np.ndarray[Any, Any]
#: Operators whose results have the sequences of the first operand, or none.
_ARITHMETIC = frozenset({"concat", "matmul", "matmul_v2", "mul", "sum"})
#: Function that lowers operators in order into a context's builder.
LowerOperators = Callable[[Iterable[SourceOp], "Context"], None]


class Context:
    """The graph builder of a block, and the Lite value of every source value.

    Args:
        builder: receives the nodes.
        program: the whole model, for its version.
        lower_operators: function that lowers the operators of inner blocks.
        outer: the context of the enclosing block.
        reads_offsets: the graph has inputs for sequence offsets, so that tensors can be several sequences.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        program: SourceProgram,
        lower_operators: LowerOperators,
        outer: Context | None = None,
        *,
        reads_offsets: bool = False,
    ) -> None:
        self.builder = builder
        self.program = program
        self._lower_operators = lower_operators
        self._outer = outer
        self._values: dict[SourceValue, Value] = {}
        # Model outputs get their names at the very end, the names that Paddle's inference API shows.
        self._outputs = {source for _, source in program.outputs}
        self._read: set[SourceValue] | None = None
        self._arrays: dict[SourceValue, AnyArray] = {}
        self._sequences: dict[SourceValue, Sequences | None] = {}
        self._made: dict[Hashable, list[Value]] = {}
        self.reads_offsets: bool = reads_offsets if outer is None else outer.reads_offsets
        #: Float values that hold whole numbers, with the int8 tensors they were computed from.
        self.quantized: dict[Value, Value] = {} if outer is None else outer.quantized
        #: Values [..., 2] with the real and the imaginary part of complex numbers.
        self.complex: set[Value] = set() if outer is None else outer.complex

    @property
    def version(self) -> int:
        """Version of Paddle that wrote the model (2006002 is 2.6.2; 0, a development build, counts as new)."""
        return self.program.version or 9_999_999

    # **** inputs and attributes ****

    def value(self, source: SourceValue) -> Value:
        """Return the Lite value of a source value of this block or an enclosing block."""
        found = self.find(source)
        if found is not None:
            return found
        if self.array(source) is not None:
            raise Unlowerable(f"it needs {source.name!r}, a list of tensors, as a tensor")
        raise Unlowerable(f"it needs {source.name!r}, an output that its operator does not compute in inference")

    def find(self, source: SourceValue) -> Value | None:
        """Return the Lite value of a source value, or None if it has none (yet)."""
        return next((scope._values[source] for scope in self._scopes() if source in scope._values), None)

    def array(self, source: SourceValue) -> AnyArray | None:
        """Return the tensor array bound to a source value in this block or an enclosing block; None for a tensor."""
        return next((scope._arrays[source] for scope in self._scopes() if source in scope._arrays), None)

    def sequences(self, source: SourceValue) -> Sequences | None:
        """Return the sequences that the rows of a source value consist of, or None if they are not known."""
        return next((scope._sequences[source] for scope in self._scopes() if source in scope._sequences), None)

    def _scopes(self) -> Iterator[Context]:
        """Iterate over this context and those around it, innermost first."""
        scope: Context | None = self
        while scope is not None:
            yield scope
            scope = scope._outer

    def input(self, op: SourceOp, slot: str) -> Value:
        """Return the single value in a slot. Raises Unlowerable if the slot is absent."""
        sources = op.inputs.get(slot)
        if not sources:
            raise Unlowerable(f"its input {slot} is missing")
        return self.value(sources[0])

    def optional(self, op: SourceOp, slot: str) -> Value | None:
        """Return the single value in a slot, or None."""
        sources = op.inputs.get(slot)
        return self.value(sources[0]) if sources else None

    def inputs(self, op: SourceOp, slot: str) -> list[Value]:
        """Return every value in a slot; an empty list if the slot is absent."""
        return [self.value(s) for s in op.inputs.get(slot, ())]

    def any_input(self, op: SourceOp, *slots: str) -> Value:
        """Return the single value in the first of these slots that is present: legacy files have "X", PIR files "0"."""
        found = self.any_optional(op, *slots)
        if found is None:
            raise Unlowerable(f"its input {slots[0]} is missing")
        return found

    def any_optional(self, op: SourceOp, *slots: str) -> Value | None:
        """Return the single value in the first of these slots that is present, or None."""
        return next((self.value(op.inputs[s][0]) for s in slots if op.inputs.get(s)), None)

    @staticmethod
    def attribute(op: SourceOp, *names: str) -> Any:
        """Return the first of these attributes that is present. Raises Unlowerable if none is present."""
        for name in names:
            if op.attrs.get(name) is not None:
                return op.attrs[name]
        raise Unlowerable(f"its attribute {names[0]} is missing")

    def known(self, value: Value | None) -> Array | None:
        """Return the elements of a value if they are known at load (some may be symbolic dimensions), else None."""
        return None if value is None else self.builder.known(value)

    def floats(self, value: Value | None) -> Array | None:
        """Return the elements of a float32 constant of any size, or of a known value; else None."""
        array = self.known(value)
        return array if array is not None and array.dtype == np.float32 else None

    def known_ints(self, value: Value | None) -> list[int] | None:
        """Return the elements of an integer value if all of them are known as plain integers, else None."""
        known = self.known(value)
        if known is None or known.dtype == object or known.dtype.kind not in "iu":
            return None
        return [int(i) for i in known.reshape(-1)]

    @staticmethod
    def rank(value: Value, why: str) -> int:
        """Return the rank of a value. Raises Unlowerable if it is unknown; ``why`` says what needs it."""
        if value.type.rank is None:
            raise Unlowerable(f"the rank of {value.name!r} is not known before the model runs, but {why}")
        return value.type.rank

    def is_used(self, op: SourceOp, slot: str) -> bool:
        """Return True if the model reads the operator's output in a slot, or returns it."""
        return any(self.is_read(s) for s in op.outputs.get(slot, ()))

    def is_read(self, source: SourceValue) -> bool:
        """Return True if the model reads a source value, or returns it."""
        if self._outer is not None:
            return self._outer.is_read(source)
        if self._read is None:
            block = self.program.block
            self._read = {s for o in block.walk() for group in o.inputs.values() for s in group}
            self._read |= {s for o in block.walk() for inner in o.blocks for s in inner.results}
            self._read |= {s for _, s in self.program.outputs}
        return source in self._read

    def reads_complex(self, op: SourceOp) -> bool:
        """Return True if an input of an operator has complex numbers."""
        return bool(self.complex) and any(self.find(s) in self.complex for group in op.inputs.values() for s in group)

    # **** outputs ****

    def bind(self, op: SourceOp, slot: str, *values: Value) -> None:
        """Bind Lite values to the outputs in a slot. A slot the model does not use is skipped."""
        for source, value in zip(op.outputs.get(slot, ()), values):
            self._values[source] = value
            if source not in self._outputs:
                self.builder.rename(value, source.name)

    def bind_value(self, source: SourceValue, value: Value) -> None:
        """Bind a Lite value to a source value (inputs, parameters, block arguments)."""
        self._values[source] = value

    def bind_sequences(self, source: SourceValue, sequences: Sequences | None) -> None:
        """Set the sequences of a source value, or that it has none."""
        self._sequences[source] = sequences

    def inherit_sequences(self, op: SourceOp) -> None:
        """Give outputs of a lowered operator, unless they are set, the sequences of the first input that fits.

        An input fits if it has as many rows as the output, or if the file says that the output has sequences. Of the
        operands of arithmetic, Paddle looks at the first one only.
        """
        sources = [s for group in op.inputs.values() for s in group]
        if op.inputs.get("X") and (op.type in _ARITHMETIC or op.type.startswith("elementwise_")):
            sources = op.inputs["X"][:1]
        sources = [s for s in sources if self.sequences(s) is not None]
        if not sources:
            return
        for out in (s for group in op.outputs.values() for s in group):
            value = None if out in self._sequences else self._values.get(out)
            if value is None or not value.type.rank:
                continue
            declared = out.type is not None and out.type.lod_level > 0
            fitting = (s for s in sources if declared or _rows(self.find(s)) == value.shape[0])
            self._sequences[out] = next((self.sequences(s) for s in fitting), None)

    def bind_array(self, source: SourceValue, array: AnyArray) -> None:
        """Bind a tensor array to a source value."""
        self._arrays[source] = array

    def node(
        self,
        type_: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute | list[Any]] | None = None,
        *,
        domain: str = "",
    ) -> Value:
        """Add a node with one output and return it."""
        return self.builder.add(type_, inputs, attributes, domain=domain)  # type: ignore[arg-type]

    def nodes(
        self,
        type_: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute | list[Any]] | None = None,
        *,
        outputs: int,
        domain: str = "",
    ) -> list[Value]:
        """Add a node with several outputs and return them."""
        return self.builder.add_node(type_, inputs, attributes, outputs=outputs, domain=domain)  # type: ignore[arg-type]

    def made_once(self, key: Hashable, make: Callable[[], list[Value]]) -> list[Value]:
        """Return what ``make`` returned when it was first called for a key, in this block or one around it."""
        found = next((scope._made[key] for scope in self._scopes() if key in scope._made), None)
        if found is None:
            found = self._made[key] = make()
        return found

    def emit(
        self,
        op: SourceOp,
        type_: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute | list[Any]] | None = None,
        *,
        slot: str = "Out",
        domain: str = "",
    ) -> None:
        """Add a node whose only output is the operator's output in ``slot``."""
        self.bind(op, slot, self.node(type_, inputs, attributes, domain=domain))

    def scalar(self, number: float | int | bool, like: Value | DType) -> Value:
        """Add a 0-D constant of the element type of ``like``."""
        dtype = like if isinstance(like, DType) else like.dtype
        return self.builder.constant(np.array(number).astype(dtype.numpy))

    def cast(self, value: Value, dtype: DType | str) -> Value:
        """Return the value in an element type; the value itself if it has that type."""
        wanted = DType.of(dtype)
        return value if value.dtype is wanted else self.node("Cast", [value], {"to": wanted})

    def reshape(self, value: Value, shape: Iterable[int]) -> Value:
        """Reshape a value to a shape of integers, with 0 and -1 as in Reshape."""
        return self.node("Reshape", [value, self.builder.ints(*shape)])

    def transpose(self, value: Value, order: Iterable[int]) -> Value:
        """Permute the axes of a value; return the value itself if the order is unchanged."""
        order = tuple(order)
        return value if order == tuple(range(len(order))) else self.node("Transpose", [value], {"perm": order})

    # **** sub-blocks ****

    def inner(self, name: str) -> Context:
        """Return a context for a block inside this one."""
        return Context(GraphBuilder(name, outer=self.builder), self.program, self._lower_operators, self)

    def block_input(self, name: str, dtype: DType, shape: Iterable[Dim | None] | None) -> Value:
        """Add an input to this block's graph, with a number behind its name if the name is taken."""
        return self.builder.input(self.builder.unique_name(name), dtype, shape)

    def lower_block(self, block: SourceBlock) -> None:
        """Lower the operators of a block into this context's builder."""
        self._lower_operators(block.ops, self)


def _rows(value: Value | None) -> Dim | None:
    return value.shape[0] if value is not None and value.type.rank else None
