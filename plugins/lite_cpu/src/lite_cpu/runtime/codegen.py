"""Writing native functions whose every value is a 64-bit word: an integer, or an address of words.

That is all the runtime needs, and it makes control flow with atomics read like ordinary code::

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

__all__ = ["Function", "Loop", "Module", "Variable", "Word"]

WORD = ir.IntType(64)
Operand = Union["Word", int]


class Word:
    """A 64-bit value. Comparisons are unsigned and give a condition for ``if_`` and ``leave_if``.

    ``address[i]`` loads and ``address[i] = value`` stores the i-th word from an address.
    """

    __slots__ = ("f", "value")

    def __init__(self, f: Function, value: Any) -> None:
        self.f, self.value = f, value

    def __add__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.add(self.value, self.f.word(other).value))

    def __sub__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.sub(self.value, self.f.word(other).value))

    def __mul__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.mul(self.value, self.f.word(other).value))

    def __floordiv__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.udiv(self.value, self.f.word(other).value))

    def __and__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.and_(self.value, self.f.word(other).value))

    def __or__(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.or_(self.value, self.f.word(other).value))

    def __lshift__(self, bits: Operand) -> Word:
        return Word(self.f, self.f.builder.shl(self.value, self.f.word(bits).value))

    def __rshift__(self, bits: int) -> Word:
        return Word(self.f, self.f.builder.lshr(self.value, self.f.word(bits).value))

    def compare(self, sign: str, other: Operand) -> Any:
        """The condition ``self sign other``; signs are those of Python."""
        return self.f.builder.icmp_unsigned(sign, self.value, self.f.word(other).value)

    def minimum(self, other: Operand) -> Word:
        return Word(self.f, self.f.builder.select(self.compare("<", other), self.value, self.f.word(other).value))

    def at(self, index: Operand) -> Word:
        """The address of the index-th word from here."""
        return self + (index * 8 if isinstance(index, Word) else int(index) * 8)

    def __getitem__(self, index: Operand) -> Word:
        return Word(self.f, self.f.builder.load(self.at(index).pointer(), typ=WORD, align=8))

    def __setitem__(self, index: Operand, value: Operand) -> None:
        self.f.builder.store(self.f.word(value).value, self.at(index).pointer(), align=8)

    def pointer(self) -> Any:
        return self.f.builder.inttoptr(self.value, WORD.as_pointer())

    # **** atomics on the word at this address; orders are LLVM's ****

    def load(self, order: str) -> Word:
        return Word(self.f, self.f.builder.load_atomic(self.pointer(), order, 8, typ=WORD))

    def store(self, value: Operand, order: str) -> None:
        self.f.builder.store_atomic(self.f.word(value).value, self.pointer(), order, 8)

    def fetch(self, operation: str, value: Operand, order: str) -> Word:
        """Applies ``add``, ``sub`` or ``xchg`` and gives what was there before."""
        return Word(self.f, self.f.builder.atomic_rmw(operation, self.pointer(), self.f.word(value).value, order))

    def compare_and_swap(self, expected: Operand, value: Operand) -> Any:
        """The condition that ``expected`` was there; ``value`` is now."""
        arguments = (self.pointer(), self.f.word(expected).value, self.f.word(value).value)
        pair = self.f.builder.cmpxchg(*arguments, "acq_rel", "acquire")
        return self.f.builder.extract_value(pair, 1)


class Variable:
    """A word that changes; LLVM keeps it in a register."""

    def __init__(self, f: Function, initial: Operand) -> None:
        self._f = f
        with f.builder.goto_entry_block():
            self._slot = f.builder.alloca(WORD)
        self.set(initial)

    def get(self) -> Word:
        return Word(self._f, self._f.builder.load(self._slot, typ=WORD))

    def set(self, value: Operand) -> None:
        self._f.builder.store(self._f.word(value).value, self._slot)


class Loop:
    """A loop without an end of its own."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self.exit = f.builder.append_basic_block()

    def leave_if(self, condition: Any) -> None:
        rest = self._f.builder.append_basic_block()
        self._f.builder.cbranch(condition, self.exit, rest)
        self._f.builder.position_at_end(rest)


class Function:
    """The function that is being written."""

    def __init__(self, module: Module, function: Any) -> None:
        self._module = module
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.arguments = tuple(Word(self, argument) for argument in function.args)

    def word(self, value: Operand) -> Word:
        return value if isinstance(value, Word) else Word(self, ir.Constant(WORD, int(value)))

    def variable(self, initial: Operand) -> Variable:
        return Variable(self, initial)

    def array(self, words: int) -> Word:
        """The address of ``words`` words on the stack."""
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(ir.ArrayType(WORD, words))
            return Word(self, self.builder.ptrtoint(memory, WORD))

    def if_(self, condition: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = self.builder.if_then(condition)
        return block

    def if_else(self, condition: Any) -> AbstractContextManager[Any]:
        """``with f.if_else(condition) as (then, otherwise): with then: ...; with otherwise: ...``."""
        blocks: AbstractContextManager[Any] = self.builder.if_else(condition)
        return blocks

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        body, loop = self.builder.append_basic_block(), Loop(self)
        self.builder.branch(body)
        self.builder.position_at_end(body)
        yield loop
        self.builder.branch(body)
        self.builder.position_at_end(loop.exit)

    @contextmanager
    def count(self, stop: Operand, start: Operand = 0) -> Iterator[Word]:
        """Loops over ``range(start, stop)``."""
        counter = self.variable(start)
        with self.loop() as loop:
            number = counter.get()
            loop.leave_if(number.compare(">=", stop))
            yield number
            counter.set(number + 1)

    def call(self, name: str, *arguments: Operand) -> Word:
        """Calls another function of this module."""
        callee = self._module.functions[name]
        return Word(self, self.builder.call(callee, [self.word(argument).value for argument in arguments]))

    def call_address(self, address: Word, *arguments: Operand, convention: str = "") -> Word:
        """Calls the function at an address.

        NOTE: an argument that is a 32-bit integer for the callee may be passed as a word, since every 64-bit
        calling convention passes both in the same register and ignores the upper half. Of a result of 32 bits the
        upper half is undefined, of no result all.
        """
        type_ = ir.FunctionType(WORD, [WORD] * len(arguments))
        # llvmlite takes the callee's type from the value called, which an opaque pointer cannot tell.
        callee = self.builder.inttoptr(address.value, type_.as_pointer())
        values = [self.word(argument).value for argument in arguments]
        return Word(self, self.builder.call(callee, values, cconv=convention or None))

    def pause(self) -> None:
        """Tells the processor that this is a spinning loop."""
        name, arguments = self._module.pause
        type_ = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        self.builder.call(self._module.ir.declare_intrinsic(name, fnty=type_), arguments)

    def ret(self, value: Operand | None = None) -> None:
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(self.word(value).value)


class Module:
    """Functions of one image of code.

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
        """A function of ``arguments`` words that gives one, or none; its last statement must be ``ret`` if one."""
        type_ = ir.FunctionType(WORD if result else ir.VoidType(), [WORD] * arguments)
        function = ir.Function(self.ir, type_, name)
        function.linkage = "" if exported else "internal"
        function.calling_convention = convention
        self.functions[name] = function
        f = Function(self, function)
        yield f
        if not f.builder.block.is_terminated:
            f.ret()
