"""Generation of native functions whose values are all 64-bit integers or addresses of such integers.

The runtime needs no other type, and control flow with atomics reads like ordinary code::

    with code.function("sum", 2, result=True) as f:
        address, count = f.arguments
        total = f.variable(0)
        with f.count(count) as i:
            total.set(total.get() + address[i])
        f.ret(total.get())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Union

from llvmlite import ir

__all__ = ["Function", "Int64", "Loop", "Module", "Variable"]

INT64 = ir.IntType(64)
Operand = Union["Int64", int]


class Int64:
    """A 64-bit integer or address (a machine word) in generated code.

    Comparisons are unsigned and return a condition for ``if_`` and ``leave_if``. ``address[i]`` loads and
    ``address[i] = value`` stores the i-th 64-bit integer from an address.
    """

    __slots__ = ("f", "value")

    def __init__(self, f: Function, value: Any) -> None:
        self.f, self.value = f, value

    def __add__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.add(self.value, self.f.int64(other).value))

    def __sub__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.sub(self.value, self.f.int64(other).value))

    def __mul__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.mul(self.value, self.f.int64(other).value))

    def __floordiv__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.udiv(self.value, self.f.int64(other).value))

    def __and__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.and_(self.value, self.f.int64(other).value))

    def __or__(self, other: Operand) -> Int64:
        return Int64(self.f, self.f.builder.or_(self.value, self.f.int64(other).value))

    def __lshift__(self, bits: Operand) -> Int64:
        return Int64(self.f, self.f.builder.shl(self.value, self.f.int64(bits).value))

    def __rshift__(self, bits: int) -> Int64:
        return Int64(self.f, self.f.builder.lshr(self.value, self.f.int64(bits).value))

    def compare(self, sign: str, other: Operand) -> Any:
        """Return the condition ``self sign other``; ``sign`` is a comparison operator of Python."""
        return self.f.builder.icmp_unsigned(sign, self.value, self.f.int64(other).value)

    def minimum(self, other: Operand) -> Int64:
        """Return the smaller of two values."""
        return Int64(self.f, self.f.builder.select(self.compare("<", other), self.value, self.f.int64(other).value))

    def at(self, index: Operand) -> Int64:
        """Return the address of the index-th 64-bit integer from this address."""
        return self + (index * 8 if isinstance(index, Int64) else int(index) * 8)

    def __getitem__(self, index: Operand) -> Int64:
        return Int64(self.f, self.f.builder.load(self.at(index).pointer(), typ=INT64, align=8))

    def __setitem__(self, index: Operand, value: Operand) -> None:
        self.f.builder.store(self.f.int64(value).value, self.at(index).pointer(), align=8)

    def pointer(self) -> Any:
        return self.f.builder.inttoptr(self.value, INT64.as_pointer())

    # **** atomics on the integer at this address; memory orders are LLVM's ****

    def load(self, order: str) -> Int64:
        return Int64(self.f, self.f.builder.load_atomic(self.pointer(), order, 8, typ=INT64))

    def store(self, value: Operand, order: str) -> None:
        self.f.builder.store_atomic(self.f.int64(value).value, self.pointer(), order, 8)

    def fetch(self, operation: str, value: Operand, order: str) -> Int64:
        """Apply ``add``, ``sub`` or ``xchg`` atomically and return the previous value."""
        return Int64(self.f, self.f.builder.atomic_rmw(operation, self.pointer(), self.f.int64(value).value, order))

    def compare_and_swap(self, expected: Operand, value: Operand, order: str) -> Any:
        """Replace ``expected`` by ``value`` atomically; return the condition that ``expected`` was found.

        ``order`` is that of the exchange. If another value is found, nothing is ordered.
        """
        arguments = (self.pointer(), self.f.int64(expected).value, self.f.int64(value).value)
        pair = self.f.builder.cmpxchg(*arguments, order, "monotonic")
        return self.f.builder.extract_value(pair, 1)


class Variable:
    """A mutable 64-bit variable; LLVM keeps it in a register."""

    def __init__(self, f: Function, initial: Operand) -> None:
        self._f = f
        with f.builder.goto_entry_block():
            self._slot = f.builder.alloca(INT64)
        self.set(initial)

    def get(self) -> Int64:
        return Int64(self._f, self._f.builder.load(self._slot, typ=INT64))

    def set(self, value: Operand) -> None:
        self._f.builder.store(self._f.int64(value).value, self._slot)


class Loop:
    """An endless loop, which only ``leave_if`` ends."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self.exit = f.builder.append_basic_block()

    def leave_if(self, condition: Any) -> None:
        rest = self._f.builder.append_basic_block()
        self._f.builder.cbranch(condition, self.exit, rest)
        self._f.builder.position_at_end(rest)


class Function:
    """A native function under construction."""

    def __init__(self, module: Module, function: Any) -> None:
        self._module = module
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.arguments = tuple(Int64(self, argument) for argument in function.args)

    def int64(self, value: Operand) -> Int64:
        """Return ``value`` as an :class:`Int64`; a Python integer becomes a constant."""
        return value if isinstance(value, Int64) else Int64(self, ir.Constant(INT64, int(value)))

    def variable(self, initial: Operand) -> Variable:
        return Variable(self, initial)

    def array(self, length: int) -> Int64:
        """Allocate ``length`` 64-bit integers on the stack and return their address."""
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(ir.ArrayType(INT64, length))
            return Int64(self, self.builder.ptrtoint(memory, INT64))

    def if_(self, condition: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = self.builder.if_then(condition)
        return block

    def if_else(self, condition: Any) -> AbstractContextManager[Any]:
        """Open both branches: ``with f.if_else(c) as (then, otherwise): with then: ...; with otherwise: ...``."""
        blocks: AbstractContextManager[Any] = self.builder.if_else(condition)
        return blocks

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """Open an endless loop around the body of the ``with`` statement."""
        body, loop = self.builder.append_basic_block(), Loop(self)
        self.builder.branch(body)
        self.builder.position_at_end(body)
        yield loop
        self.builder.branch(body)
        self.builder.position_at_end(loop.exit)

    @contextmanager
    def count(self, stop: Operand, start: Operand = 0) -> Iterator[Int64]:
        """Open a loop over ``range(start, stop)`` and yield the counter."""
        counter = self.variable(start)
        with self.loop() as loop:
            number = counter.get()
            loop.leave_if(number.compare(">=", stop))
            yield number
            counter.set(number + 1)

    def call(self, name: str, *arguments: Operand) -> Int64:
        """Call another function of this module."""
        callee = self._module.functions[name]
        return Int64(self, self.builder.call(callee, [self.int64(argument).value for argument in arguments]))

    def call_address(self, address: Int64, *arguments: Operand, convention: str = "") -> Int64:
        """Call the function at an address.

        NOTE: if the callee expects a 32-bit integer, a 64-bit one may be passed: every 64-bit calling convention
        passes both in the same register and ignores the upper half. If the callee returns 32 bits, the upper half of
        the result is undefined; if it returns nothing, the whole result is.
        """
        type_ = ir.FunctionType(INT64, [INT64] * len(arguments))
        # llvmlite reads the callee's type from the called value, and an opaque pointer has none.
        callee = self.builder.inttoptr(address.value, type_.as_pointer())
        values = [self.int64(argument).value for argument in arguments]
        return Int64(self, self.builder.call(callee, values, cconv=convention or None))

    def pause(self) -> None:
        """Emit the instruction that tells the processor that this loop spins."""
        name, arguments = self._module.pause
        type_ = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        self.builder.call(self._module.ir.declare_intrinsic(name, fnty=type_), arguments)

    def ret(self, value: Operand | None = None) -> None:
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(self.int64(value).value)


class Module:
    """Functions that are compiled into one code image.

    Args:
        triple: the LLVM target, x86-64 or AArch64.
    """

    def __init__(self, triple: str) -> None:
        self.ir = ir.Module("lite_runtime")
        self.ir.triple = triple
        self.functions: dict[str, Any] = {}
        self.pause: tuple[str, Sequence[Any]]
        if triple.startswith("x86_64"):
            self.pause = ("llvm.x86.sse2.pause", ())
        else:
            self.pause = ("llvm.aarch64.hint", (ir.Constant(ir.IntType(32), 1),))  # YIELD

    @contextmanager
    def function(
        self, name: str, arguments: int, *, result: bool = False, exported: bool = False, convention: str = ""
    ) -> Iterator[Function]:
        """Open a function of ``arguments`` 64-bit integers; with ``result`` its last statement must be ``ret``."""
        type_ = ir.FunctionType(INT64 if result else ir.VoidType(), [INT64] * arguments)
        function = ir.Function(self.ir, type_, name)
        function.linkage = "" if exported else "internal"
        function.calling_convention = convention
        self.functions[name] = function
        f = Function(self, function)
        yield f
        if not f.builder.block.is_terminated:
            f.ret()
