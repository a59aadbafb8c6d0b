"""The language that kernels are written in: a thin layer over llvmlite's IR builder.

A kernel is Python code that runs once and emits LLVM IR: a Python ``for`` statement is unrolled, :meth:`Emitter.loop`
is a loop at run time. Numbers are scalars or vectors of class :class:`Val` with the usual operators; memory is accessed
through :class:`Pointer`::

    k = Emitter(machine)
    with k.kernel("relu__f32") as (pointers, params, begin, end, scratch):
        x, y = pointers.tensor(0, FLOAT32), pointers.tensor(1, FLOAT32)
        with k.loop(begin, end) as i:
            v = x[i].load()
            y[i].store((v < 0.0).select(0.0, v))
    text = k.text()

Every kernel has the same C signature, ``void (ptr pointers, ptr params, i64 begin, i64 end, ptr scratch)``: addresses
of tensors, sizes and strides as int64, the range of work items that this call processes, and the scratch memory of the
thread.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Union

from lite_core.ir import DType
from lite_cpu.machine import Machine

if TYPE_CHECKING:
    from llvmlite import ir
else:
    from lite_cpu.machine_code.ir_module import ir

__all__ = ["Cursor", "Emitter", "Number", "Pointer", "Pointers", "Val", "Variable", "bfloats"]

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
PTR = ir.PointerType()
_TYPES: dict[DType, ir.Type] = {
    DType.BOOL: I1,
    DType.FLOAT16: ir.HalfType(),
    DType.BFLOAT16: I16,
    DType.FLOAT32: ir.FloatType(),
    DType.FLOAT64: ir.DoubleType(),
    **{DType(f"{s}int{n}"): ir.IntType(n) for s in ("", "u") for n in (8, 16, 32, 64)},
    # A byte, of which the lower four bits count; loaded as 8-bit integers, and never stored.
    DType.INT4: I8,
    DType.UINT4: I8,
}
Number = Union["Val", int, float]


@functools.cache
def bfloats(count: int) -> ir.Type:
    """Return LLVM's type ``bfloat``, which llvmlite lacks, or of a vector of them: the type that instructions need."""

    # Defined late: without a compiler there are no types to inherit from.
    class BFloat(ir.Type):  # type: ignore[misc]  # llvmlite is not typed
        def _to_string(self) -> str:
            return "bfloat"

    return ir.VectorType(BFloat(), count) if count > 1 else BFloat()


@functools.cache  # a type's text is made once for each object
def _type(dtype: DType, lanes: int) -> ir.Type:
    return ir.VectorType(_TYPES[dtype], lanes) if lanes > 1 else _TYPES[dtype]


class Val:
    """A value in a register: a scalar (``lanes == 1``) or a vector of ``dtype``; a bool is one bit."""

    __slots__ = ("dtype", "ir", "k", "lanes")

    def __init__(self, k: Emitter, value: ir.Value, dtype: DType, lanes: int = 1) -> None:
        self.k, self.ir, self.dtype, self.lanes = k, value, dtype, lanes

    # **** arithmetic ****

    def _binary(self, other: Number, float_op: str, signed_op: str, unsigned_op: str = "") -> Val:
        a, b = self.k.alike(self, other)
        name = float_op if a.dtype.is_floating else signed_op if a.dtype.is_signed else unsigned_op or signed_op
        return Val(self.k, getattr(self.k.b, name)(a.ir, b.ir), a.dtype, a.lanes)

    def __add__(self, other: Number) -> Val:
        return self._binary(other, "fadd", "add")

    def __sub__(self, other: Number) -> Val:
        return self._binary(other, "fsub", "sub")

    def __mul__(self, other: Number) -> Val:
        return self._binary(other, "fmul", "mul")

    def __truediv__(self, other: Number) -> Val:
        """Quotient; integer quotients are truncated toward zero."""
        return self._binary(other, "fdiv", "sdiv", "udiv")

    def __floordiv__(self, other: Number) -> Val:
        """Quotient of two non-negative integers."""
        return self._binary(other, "fdiv", "sdiv", "udiv")

    def __mod__(self, other: Number) -> Val:
        """Remainder with the sign of the dividend (C's ``%`` and ``fmod``)."""
        return self._binary(other, "frem", "srem", "urem")

    def __and__(self, other: Number) -> Val:
        return self._binary(other, "and_", "and_")

    def __or__(self, other: Number) -> Val:
        return self._binary(other, "or_", "or_")

    def __xor__(self, other: Number) -> Val:
        return self._binary(other, "xor", "xor")

    def __lshift__(self, other: Number) -> Val:
        return self._binary(other, "shl", "shl")

    def __rshift__(self, other: Number) -> Val:
        return self._binary(other, "ashr", "ashr", "lshr")

    def __neg__(self) -> Val:
        if self.dtype.is_floating:
            return Val(self.k, self.k.b.fneg(self.ir), self.dtype, self.lanes)
        return self.k.constant(0, self.dtype, self.lanes) - self

    def __invert__(self) -> Val:
        return Val(self.k, self.k.b.not_(self.ir), self.dtype, self.lanes)

    def __radd__(self, other: int | float) -> Val:
        return self + other

    def __rmul__(self, other: int | float) -> Val:
        return self * other

    def __rsub__(self, other: int | float) -> Val:
        return self.k.constant(other, self.dtype, self.lanes) - self

    def __rtruediv__(self, other: int | float) -> Val:
        return self.k.constant(other, self.dtype, self.lanes) / self

    # **** comparison (a pair with NaN compares false, except for ``ne``) ****

    def _compare(self, sign: str, other: Number) -> Val:
        a, b = self.k.alike(self, other)
        if a.dtype.is_floating:
            make = self.k.b.fcmp_unordered if sign == "!=" else self.k.b.fcmp_ordered
        else:
            make = self.k.b.icmp_signed if a.dtype.is_signed else self.k.b.icmp_unsigned
        return Val(self.k, make(sign, a.ir, b.ir), DType.BOOL, a.lanes)

    def __lt__(self, other: Number) -> Val:
        return self._compare("<", other)

    def __le__(self, other: Number) -> Val:
        return self._compare("<=", other)

    def __gt__(self, other: Number) -> Val:
        return self._compare(">", other)

    def __ge__(self, other: Number) -> Val:
        return self._compare(">=", other)

    def eq(self, other: Number) -> Val:
        return self._compare("==", other)

    def ne(self, other: Number) -> Val:
        return self._compare("!=", other)

    def is_nan(self) -> Val:
        return Val(self.k, self.k.b.fcmp_unordered("uno", self.ir, self.ir), DType.BOOL, self.lanes)

    def select(self, yes: Number, no: Number) -> Val:
        """Return ``yes`` where this bool is true, else ``no``."""
        if not isinstance(yes, Val) and not isinstance(no, Val):
            raise TypeError("one side of a select must be a Val, to say the element type")
        a, b = self.k.alike(yes, no)
        lanes = max(a.lanes, self.lanes)
        condition = self.splat(lanes) if lanes > 1 else self
        return Val(self.k, self.k.b.select(condition.ir, a.splat(lanes).ir, b.splat(lanes).ir), a.dtype, lanes)

    # **** shape and type ****

    def splat(self, lanes: int) -> Val:
        """Return a vector with this scalar in every lane."""
        if self.lanes == lanes:
            return self
        if self.lanes != 1:
            raise TypeError(f"a vector of {self.lanes} cannot become one of {lanes}")
        undefined = ir.Constant(_type(self.dtype, lanes), ir.Undefined)
        first = self.k.b.insert_element(undefined, self.ir, ir.Constant(I32, 0))
        return Val(self.k, self.k.b.shuffle_vector(first, undefined, _positions((0,) * lanes)), self.dtype, lanes)

    def lane(self, index: int) -> Val:
        return Val(self.k, self.k.b.extract_element(self.ir, ir.Constant(I32, index)), self.dtype)

    def repeat_lane(self, index: int, lanes: int) -> Val:
        """Return a vector with one lane of this vector in every lane; a scalar is its own only lane."""
        return self.splat(lanes) if self.lanes == 1 else self.shuffle(self, [index] * lanes)

    def shuffle(self, other: Val, lanes: Sequence[int]) -> Val:
        """Return the lanes of the given numbers from this vector followed by ``other``."""
        mask = _positions(tuple(lanes))
        return Val(self.k, self.k.b.shuffle_vector(self.ir, other.ir, mask), self.dtype, len(lanes))

    def bits(self, dtype: DType) -> Val:
        """Reinterpret the bits as another type; of another width, it has as many lanes as fill the same bits."""
        lanes = self.lanes * self.dtype.itemsize // dtype.itemsize
        return Val(self.k, self.k.b.bitcast(self.ir, _type(dtype, lanes)), dtype, lanes)

    def to(self, dtype: DType) -> Val:
        """Convert to ``dtype`` as C does; a float outside an integer type's range gives an unspecified integer.

        The conversion to bool is ``x != 0``; to bfloat16 and float16 it rounds to nearest even.
        """
        k, b, source = self.k, self.k.b, self.dtype
        if source is dtype:
            return self
        if dtype is DType.BOOL:
            return self.ne(0)
        if source is DType.BFLOAT16:
            wide = Val(k, b.zext(self.ir, _type(DType.UINT32, self.lanes)), DType.UINT32, self.lanes)
            return (wide << 16).bits(DType.FLOAT32).to(dtype)
        if dtype is DType.BFLOAT16:
            return k.round_to_bfloat16(self.to(DType.FLOAT32))
        target = _type(dtype, self.lanes)
        if source.is_floating and dtype.is_floating:
            value = b.fpext(self.ir, target) if dtype.itemsize > source.itemsize else b.fptrunc(self.ir, target)
        elif source.is_floating:
            value = b.fptosi(self.ir, target) if dtype.is_signed else b.fptoui(self.ir, target)
        elif dtype.is_floating:
            value = b.sitofp(self.ir, target) if source.is_signed else b.uitofp(self.ir, target)
        elif source is DType.BOOL or dtype.itemsize > source.itemsize:
            widen = b.sext if source.is_signed and source is not DType.BOOL else b.zext
            value = widen(self.ir, target)
        elif dtype.itemsize < source.itemsize:
            value = b.trunc(self.ir, target)
        else:
            value = self.ir
        return Val(k, value, dtype, self.lanes)


class Pointer:
    """The address of an element of ``dtype``; ``p[i]`` is the address ``i`` elements further."""

    __slots__ = ("dtype", "ir", "k")

    def __init__(self, k: Emitter, value: ir.Value, dtype: DType) -> None:
        self.k, self.ir, self.dtype = k, value, dtype

    def __getitem__(self, index: Number) -> Pointer:
        element = I8 if self.dtype is DType.BOOL else _TYPES[self.dtype]
        return Pointer(self.k, self.k.b.gep(self.ir, [self.k.index(index).ir], source_etype=element), self.dtype)

    def cast(self, dtype: DType) -> Pointer:
        return Pointer(self.k, self.ir, dtype)

    def load(self, lanes: int = 1, mask: Val | None = None, *, alignment: int = 0) -> Val:
        """Load an element, or ``lanes`` of them; where ``mask`` is false, memory is not read and the result is 0.

        Without a mask the address may be a multiple of ``alignment`` only, by default of the size of an element.
        """
        stored = DType.UINT8 if self.dtype is DType.BOOL else self.dtype
        type_ = _type(stored, lanes)
        if mask is None:
            value = self.k.b.load(self.ir, typ=type_)
            value.align = alignment or stored.itemsize
        else:
            # LLVM 20 takes the alignment as an operand, LLVM 22 as an attribute; it rewrites calls of the older form.
            name = f"llvm.masked.load.{_suffix(type_)}.p0"
            alignment, zero = ir.Constant(I32, stored.itemsize), ir.Constant(type_, None)
            value = self.k.intrinsic(name, type_, [self.ir, alignment, mask.ir, zero])
        loaded = Val(self.k, value, stored, lanes)
        if self.dtype in (DType.INT4, DType.UINT4):
            wide = DType.INT8 if self.dtype is DType.INT4 else DType.UINT8
            return (Val(self.k, value, wide, lanes) << 4) >> 4
        return loaded.ne(0) if self.dtype is DType.BOOL else loaded

    def store(self, value: Number, mask: Val | None = None) -> None:
        """Store a scalar or a vector where ``mask`` is true."""
        stored = DType.UINT8 if self.dtype is DType.BOOL else self.dtype
        value = self.k.value(value, stored).to(stored)
        if mask is None:
            self.k.b.store(value.ir, self.ir, align=stored.itemsize)
        else:
            name = f"llvm.masked.store.{_suffix(value.ir.type)}.p0"
            alignment = ir.Constant(I32, stored.itemsize)
            self.k.intrinsic(name, ir.VoidType(), [value.ir, self.ir, alignment, mask.ir])

    def stream(self, vector: Val) -> None:
        """Store a vector in memory without reading its cache lines, for data that is not needed again soon.

        The address is a multiple of the vector's size. Other threads see the data after :meth:`Emitter.order_stores`.
        """
        size = vector.dtype.itemsize * vector.lanes
        instruction = self.k.b.store(vector.ir, self.ir, align=size)
        instruction.set_metadata("nontemporal", self.k.module.add_metadata([ir.Constant(I32, 1)]))

    def prefetch(self, *, write: bool = False, level: int = 1) -> None:
        """Prefetch the cache line of this address; ``level`` 1 is the nearest cache."""
        arguments = [self.ir, *(ir.Constant(I32, n) for n in (int(write), 4 - level, 1))]
        self.k.intrinsic("llvm.prefetch.p0", ir.VoidType(), arguments)


class Variable:
    """A mutable variable of the kernel; LLVM keeps it in a register."""

    __slots__ = ("_slot", "dtype", "k", "lanes")

    def __init__(self, k: Emitter, initial: Val) -> None:
        self.k, self.dtype, self.lanes = k, initial.dtype, initial.lanes
        with k.b.goto_entry_block():
            self._slot = k.b.alloca(initial.ir.type)
        self.set(initial)

    def get(self) -> Val:
        return Val(self.k, self.k.b.load(self._slot, typ=_type(self.dtype, self.lanes)), self.dtype, self.lanes)

    def set(self, value: Number) -> None:
        self.k.b.store(self.k.value(value, self.dtype, self.lanes).ir, self._slot)


class Cursor:
    """A pointer that moves through memory; LLVM keeps it in a register."""

    __slots__ = ("_address", "dtype", "k")

    def __init__(self, k: Emitter, start: Pointer) -> None:
        self.k, self.dtype = k, start.dtype
        with k.b.goto_entry_block():
            self._address = k.b.alloca(PTR)
            self._address.type = PTR  # llvmlite 0.45 makes it ``ptr*``, which LLVM refuses
        k.b.store(start.ir, self._address)

    def get(self) -> Pointer:
        return Pointer(self.k, self.k.b.load(self._address, typ=PTR), self.dtype)

    def advance(self, count: Number) -> None:
        """Move forward by a number of elements."""
        self.k.b.store(self.get()[count].ir, self._address)


class Pointers:
    """The first argument of a kernel: the addresses of its tensors."""

    def __init__(self, k: Emitter, base: ir.Value) -> None:
        self._k, self._base = k, base

    def tensor(self, index: Number, dtype: DType) -> Pointer:
        """Return the address of tensor number ``index``."""
        k = self._k
        slot = k.b.gep(self._base, [k.index(index).ir], source_etype=PTR)
        return Pointer(k, k.b.load(slot, typ=PTR), dtype)


class Params:
    """The second argument of a kernel: sizes and strides."""

    def __init__(self, k: Emitter, base: ir.Value) -> None:
        self._pointer = Pointer(k, base, DType.INT64)

    def __getitem__(self, index: Number) -> Val:
        return self._pointer[index].load()

    def number(self, index: Number, dtype: DType) -> Val:
        """Return a parameter that holds the bits of a float32 or float64 (see :func:`float_bits`)."""
        return self._pointer[index].cast(dtype).load()


def float_bits(number: float, dtype: DType = DType.FLOAT32) -> int:
    """Return the bits of a float as an int64 parameter, for :meth:`Params.number`."""
    packed = struct.pack("<f", number) + bytes(4) if dtype is DType.FLOAT32 else struct.pack("<d", number)
    return int(struct.unpack("<q", packed)[0])


class Emitter:
    """An LLVM module of kernels under construction, for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.module = ir.Module("lite")
        self.module.triple = machine.triple
        self.b: ir.IRBuilder = ir.IRBuilder()

    def text(self) -> str:
        """Return the module as LLVM assembly."""
        return str(self.module)

    # **** functions ****

    @contextmanager
    def kernel(self, name: str) -> Iterator[tuple[Pointers, Params, Val, Val, Pointer]]:
        """Define an exported kernel; yield pointers, params, begin, end and scratch (a pointer to bytes)."""
        signature = ir.FunctionType(ir.VoidType(), [PTR, PTR, I64, I64, PTR])
        function = ir.Function(self.module, signature, name)
        with self._body(function):
            pointers, params, begin, end, scratch = function.args
            yield (
                Pointers(self, pointers),
                Params(self, params),
                Val(self, begin, DType.INT64),
                Val(self, end, DType.INT64),
                Pointer(self, scratch, DType.UINT8),
            )

    def function(self, name: str, body: Callable[..., None], *arguments: Val | Pointer) -> None:
        """Call a function of this module; the first use of its name defines it by ``body``.

        ``body`` receives one Val or Pointer for each argument and returns nothing. A kernel uses this for code that
        it needs several times, which is then emitted only once and not inlined.
        """
        function = self.module.globals.get(name)
        if function is None:
            signature = ir.FunctionType(ir.VoidType(), [a.ir.type for a in arguments])
            function = ir.Function(self.module, signature, name)
            function.linkage = "internal"
            function.attributes.add("noinline")
            caller = self.b
            with self._body(function):
                body(*(_like(self, a, v) for a, v in zip(arguments, function.args)))
            self.b = caller
        self.b.call(function, [a.ir for a in arguments])

    @contextmanager
    def _body(self, function: ir.Function) -> Iterator[None]:
        function.attributes.add("nounwind")
        self.b = ir.IRBuilder(function.append_basic_block("entry"))
        yield
        self.b.ret_void()

    # **** numbers ****

    def constant(self, number: int | float, dtype: DType, lanes: int = 1) -> Val:
        if dtype is DType.BFLOAT16:
            raise TypeError("constants of bfloat16 are written as float32 and converted")
        return Val(self, _constant(repr(number), number, dtype, lanes), dtype, lanes)

    def index(self, number: Number) -> Val:
        """Return a number as an int64 scalar."""
        return number if isinstance(number, Val) else self.constant(number, DType.INT64)

    def value(self, number: Number, dtype: DType, lanes: int = 1) -> Val:
        """Return a number as a Val with ``lanes`` lanes; a Val keeps its type."""
        if isinstance(number, Val):
            return number.splat(lanes) if lanes > 1 else number
        return self.constant(number, dtype, lanes)

    def alike(self, a: Number, b: Number) -> tuple[Val, Val]:
        """Return two numbers with the same type and number of lanes; a Python number takes the other's type."""
        model = a if isinstance(a, Val) else b
        assert isinstance(model, Val)
        lanes = max(x.lanes for x in (a, b) if isinstance(x, Val))
        first, second = self.value(a, model.dtype, lanes), self.value(b, model.dtype, lanes)
        if first.dtype is not second.dtype:
            raise TypeError(f"operands are {first.dtype} and {second.dtype}; convert one with .to()")
        return first, second

    def vector(self, numbers: Sequence[int | float], dtype: DType) -> Val:
        """Return a constant vector."""
        return Val(self, ir.Constant(_type(dtype, len(numbers)), list(numbers)), dtype, len(numbers))

    def variable(self, initial: Val) -> Variable:
        return Variable(self, initial)

    def cursor(self, start: Pointer) -> Cursor:
        return Cursor(self, start)

    def fma(self, a: Val, b: Val, c: Val) -> Val:
        """Return ``a * b + c``, rounded once if the machine has a fused multiply-add."""
        (a, b), lanes = self.alike(a, b), max(a.lanes, b.lanes, c.lanes)
        a, b, c = a.splat(lanes), b.splat(lanes), c.splat(lanes)
        if not self.machine.fma:
            return a * b + c
        return self.call("llvm.fma", a, b, c)

    def call(self, name: str, *arguments: Val) -> Val:
        """Call an LLVM intrinsic whose result and operands have the same type, for example ``llvm.sqrt``."""
        first = arguments[0]
        value = self.intrinsic(f"{name}.{_suffix(first.ir.type)}", first.ir.type, [a.ir for a in arguments])
        return Val(self, value, first.dtype, first.lanes)

    def intrinsic(self, name: str, result: ir.Type, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call an intrinsic by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(result, [a.type for a in arguments]), name)
        return self.b.call(function, list(arguments))

    def call_address(self, address: Val, arguments: Sequence[Val | Pointer], *, convention: str = "") -> None:
        """Call the C function at an address, which is an int64, and ignore its result.

        ``convention`` is LLVM's name of the calling convention if it differs from the target's.
        """
        signature = ir.FunctionType(ir.VoidType(), [a.ir.type for a in arguments])
        # llvmlite reads the callee's type from the called value, and an opaque pointer has none.
        callee = self.b.inttoptr(address.ir, signature.as_pointer())
        self.b.call(callee, [a.ir for a in arguments], cconv=convention or None)

    def order_stores(self) -> None:
        """Make all earlier stores visible to other threads before any later one."""
        self.b.fence("seq_cst")

    def address(self, pointer: Pointer) -> Val:
        """Return an address as an int64."""
        return Val(self, self.b.ptrtoint(pointer.ir, I64), DType.INT64)

    def choose(self, condition: Val, yes: Pointer, no: Pointer) -> Pointer:
        """Select one of two addresses without a branch."""
        return Pointer(self, self.b.select(condition.ir, yes.ir, no.ir), yes.dtype)

    def minimum(self, a: Number, b: Number) -> Val:
        """Return the smaller of two numbers, or the first number if either is NaN."""
        x, y = self.alike(a, b)
        return (y < x).select(y, x)

    def maximum(self, a: Number, b: Number) -> Val:
        """Return the larger of two numbers, or the first number if either is NaN."""
        x, y = self.alike(a, b)
        return (y > x).select(y, x)

    def sum_lanes(self, vector: Val) -> Val:
        """Return the sum of the lanes of a float or integer vector, added pairwise."""
        return self.fold_lanes(vector, lambda a, b: a + b)

    def max_lanes(self, vector: Val) -> Val:
        return self.fold_lanes(vector, self.maximum)

    def fold_lanes(self, vector: Val, combine: Callable[[Val, Val], Val]) -> Val:
        """Combine all lanes to a scalar, pairwise; the number of lanes is a power of two."""
        while vector.lanes > 1:
            half = vector.lanes // 2
            low = vector.shuffle(vector, range(half))
            high = vector.shuffle(vector, range(half, 2 * half))
            if half == 1:
                low, high = vector.lane(0), vector.lane(1)
            vector = combine(low, high)
        return vector

    def any_lane(self, mask: Val) -> Val:
        """Return True if any bool of a vector is true."""
        if mask.lanes == 1:
            return mask
        return Val(self, self.intrinsic(f"llvm.vector.reduce.or.v{mask.lanes}i1", I1, [mask.ir]), DType.BOOL)

    def first_lanes(self, count: Val, lanes: int) -> Val:
        """Return a mask of ``lanes`` bools, of which the first ``count`` are true."""
        return self.vector(range(lanes), DType.INT32) < count.to(DType.INT32).splat(lanes)

    def load_first(self, pointer: Pointer, count: Val | None, lanes: int) -> Val:
        """Load a vector, reading only the first ``count`` elements (all if None); the other lanes are 0."""
        if count is None or lanes == 1:
            return pointer.load(lanes)
        if self._has_masks(pointer.dtype):
            return pointer.load(lanes, self.first_lanes(count, lanes))
        copy = self._stack(pointer.dtype, lanes)
        copy.store(self.constant(0, _stored(pointer.dtype), lanes))
        with self.loop(0, count) as i:
            copy[i].store(pointer.cast(copy.dtype)[i].load())
        return copy.cast(pointer.dtype).load(lanes)

    def store_first(self, pointer: Pointer, value: Val, count: Val | None) -> None:
        """Store the first ``count`` elements of a vector (all if None)."""
        if count is None or value.lanes == 1:
            pointer.store(value)
        elif self._has_masks(pointer.dtype):
            pointer.store(value, self.first_lanes(count, value.lanes))
        else:
            copy = self._stack(pointer.dtype, value.lanes)
            copy.cast(pointer.dtype).store(value)
            with self.loop(0, count) as i:
                pointer.cast(copy.dtype)[i].store(copy[i].load())

    def _has_masks(self, dtype: DType) -> bool:
        """Return True if loads and stores can be masked: AVX-512 also masks 1 and 2 bytes, AVX2 only 4 or 8."""
        if dtype.itemsize < 4 and (dtype is DType.BOOL or self.machine.vector_bytes < 64):
            return False
        return self.machine.masks

    def stack_bytes(self, count: int, alignment: int) -> Pointer:
        """Allocate bytes on the stack of the kernel, at a multiple of ``alignment``."""
        with self.b.goto_entry_block():
            slot = self.b.alloca(ir.ArrayType(I8, count))
        slot.align = alignment
        slot.type = PTR  # llvmlite still uses typed pointers for alloca
        return Pointer(self, slot, DType.UINT8)

    def stack(self, dtype: DType, lanes: int) -> Pointer:
        """Allocate memory for a vector on the stack."""
        return self._stack(dtype, lanes).cast(dtype)

    def _stack(self, dtype: DType, lanes: int) -> Pointer:
        """Allocate memory for a vector on the stack, typed as integers."""
        with self.b.goto_entry_block():
            slot = self.b.alloca(_type(_stored(dtype), lanes))
        slot.type = PTR  # llvmlite still uses typed pointers for alloca
        return Pointer(self, slot, _stored(dtype))

    def round_to_bfloat16(self, x: Val) -> Val:
        """Convert float32 to bfloat16, rounding to nearest even; NaN stays NaN.

        The instruction of x86 (VCVTNEPS2BF16) gives zero for magnitudes below 2**-126, and so does this method there.
        """
        if self.machine.bf16_dot:  # such processors convert by an instruction, too
            narrow = self.b.bitcast(self.b.fptrunc(x.ir, bfloats(x.lanes)), _type(DType.BFLOAT16, x.lanes))
            return Val(self, narrow, DType.BFLOAT16, x.lanes)
        bits = x.bits(DType.UINT32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        chosen = x.is_nan().select(quiet, rounded)
        narrow = self.b.trunc(chosen.ir, _type(DType.BFLOAT16, x.lanes))
        return Val(self, narrow, DType.BFLOAT16, x.lanes)

    # **** control flow ****

    @contextmanager
    def loop(self, start: Number, stop: Number, step: Number = 1) -> Iterator[Val]:
        """Emit a loop over ``start, start + step, ...`` below ``stop``; yield the index, an int64."""
        first, last, by = self.index(start), self.index(stop), self.index(step)
        before = self.b.block
        head, body, after = (self.b.append_basic_block(n) for n in ("loop", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        phi = self.b.phi(I64)
        phi.add_incoming(first.ir, before)
        index = Val(self, phi, DType.INT64)
        self.b.cbranch((index < last).ir, body, after)
        self.b.position_at_end(body)
        yield index
        following = index + by
        phi.add_incoming(following.ir, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(after)

    @contextmanager
    def walk(self, turns: Number, *moving: tuple[Pointer, Number]) -> Iterator[list[Pointer]]:
        """Emit a loop of ``turns`` turns; yield pointers, each of which moves by its number of elements every turn.

        LLVM would compute ``pointer[index * stride]`` anew in every turn: it does not reduce the strength of
        multiplications while Lite emits code.
        """
        cursors = [(self.cursor(pointer), step) for pointer, step in moving]
        with self.loop(0, turns):
            yield [cursor.get() for cursor, _ in cursors]
            for cursor, step in cursors:
                cursor.advance(step)

    def repeat(
        self, count: Number, body: Callable[[Sequence[Pointer]], None], *moving: tuple[Pointer, Number], unroll: int = 4
    ) -> None:
        """Emit ``body(pointers)`` for ``count`` turns of :meth:`walk`, ``unroll`` at a time while enough are left."""
        total = self.index(count)
        rounds = total / unroll
        with self.walk(rounds, *((pointer, self.index(step) * unroll) for pointer, step in moving)) as pointers:
            for turn in range(unroll):
                body([pointer[self.index(step) * turn] for pointer, (_, step) in zip(pointers, moving)])
        done = rounds * unroll
        with self.walk(total - done, *((pointer[done * step], step) for pointer, step in moving)) as pointers:
            body(pointers)

    @contextmanager
    def while_(self, condition: Callable[[], Val]) -> Iterator[None]:
        """Emit a loop that runs as long as ``condition`` holds, which it computes before every turn."""
        head, body, after = (self.b.append_basic_block(n) for n in ("while", "body", "after"))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(condition().ir, body, after)
        self.b.position_at_end(body)
        yield
        self.b.branch(head)
        self.b.position_at_end(after)

    @contextmanager
    def if_(self, condition: Val) -> Iterator[None]:
        with self.b.if_then(condition.ir):
            yield

    def if_else(self, condition: Val, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        with self.b.if_else(condition.ir) as (yes, no):
            with yes:
                then()
            with no:
                otherwise()

    def span(
        self, count: Number, lanes: int, body: Callable[[Val, int], None], *, unroll: int = 1, narrow: bool = False
    ) -> None:
        """Emit loops over ``count`` elements: ``body(index, lanes)`` for whole vectors, then ``body(index, 1)``.

        An iteration processes ``unroll`` whole vectors while enough are left. With ``narrow`` the remaining elements
        are first processed in vectors of half the lanes, a quarter, and so on.
        """
        total = self.index(count)
        start = self.index(0)
        widths = [(lanes, vectors) for vectors in dict.fromkeys((unroll, 1))]
        if narrow:
            widths += [(lanes >> n, 1) for n in range(1, lanes.bit_length() - 1)]
        for width, vectors in widths:
            step = width * vectors
            stop = start + (total - start) / step * step
            with self.loop(start, stop, step) as index:
                for vector in range(vectors):
                    body(index + vector * width, width)
            start = stop
        if lanes > 1:
            with self.loop(start, total) as index:
                body(index, 1)


@functools.lru_cache(4096)  # a kernel has the same constants many times, and a constant's text takes long to make
def _constant(text: str, number: int | float, dtype: DType, lanes: int) -> ir.Constant:
    """Return a constant; ``text`` tells numbers apart that are equal: 0.0 and -0.0."""
    if dtype.is_floating:
        number = _rounded(float(number), dtype)
    elif dtype is not DType.BOOL:
        number = int(number)
    return ir.Constant(_type(dtype, lanes), [number] * lanes if lanes > 1 else number)


@functools.lru_cache(4096)
def _positions(lanes: tuple[int, ...]) -> ir.Constant:
    """Return the operand of a shuffle that chooses lanes."""
    return ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))


def _like(k: Emitter, model: Val | Pointer, value: ir.Value) -> Val | Pointer:
    return Pointer(k, value, model.dtype) if isinstance(model, Pointer) else Val(k, value, model.dtype, model.lanes)


def _stored(dtype: DType) -> DType:
    """Return the unsigned integer type as wide as an element of ``dtype`` in memory."""
    return DType(f"uint{8 * dtype.itemsize}")


def _suffix(type_: Any) -> str:
    """Return the suffix of an intrinsic's name for a type: ``v8f32``, ``i64``."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_suffix(type_.element)}"
    names = {"half": "f16", "float": "f32", "double": "f64"}
    return names.get(str(type_), str(type_))


def _rounded(number: float, dtype: DType) -> float:
    """Round a constant to ``dtype``: LLVM accepts only constants that are exact in their type."""
    if math.isnan(number) or math.isinf(number) or dtype is DType.FLOAT64:
        return number
    code = "f" if dtype is DType.FLOAT32 else "e"
    return float(struct.unpack(code, struct.pack(code, number))[0])
