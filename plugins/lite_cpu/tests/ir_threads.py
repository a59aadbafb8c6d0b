"""Generated code as threads of a model: LLVM IR becomes Python functions, cut at everything other threads can see.

A piece of a function computes with its live variables only, reads and writes ordinary memory through the model, and
returns what the thread does next: an atomic access, a call, or a return. A thread between two pieces is therefore a
small tuple, which can be copied and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from llvmlite.ir import instructions as isa

__all__ = ["PRIVATE", "Code", "Resume", "atomic_instructions", "orders_of"]

#: Addresses from here on are arrays on the stack of a thread.
PRIVATE = 1 << 40

_MASK = (1 << 64) - 1
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "udiv": "//", "and": "&", "or": "|", "shl": "<<", "lshr": ">>"}
_COMPARISONS = {"eq": "==", "ne": "!=", "ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
_PIECE_ENDS = (isa.LoadAtomicInstr, isa.StoreAtomicInstr, isa.AtomicRMW, isa.CmpXchg, isa.CallInstr)
_ATOMIC = (isa.LoadAtomicInstr, isa.StoreAtomicInstr, isa.AtomicRMW, isa.CmpXchg, isa.Fence)


class Resume(NamedTuple):
    """The place where a thread goes on: a piece, its variables, and which of them receives the result (or -1)."""

    piece: int
    variables: tuple[int, ...]
    result: int

    def with_result(self, value: int) -> tuple[int, ...]:
        if self.result < 0:
            return self.variables
        return (*self.variables[: self.result], value, *self.variables[self.result + 1 :])


def atomic_instructions(module: ir.Module) -> Iterator[tuple[str, Any]]:
    """Yield (name of the function, instruction) of every atomic access and fence."""
    for function in module.functions:
        for block in function.blocks:
            yield from ((function.name, each) for each in block.instructions if isinstance(each, _ATOMIC))


def orders_of(instruction: Any) -> str:
    """Return the memory order of an atomic instruction; for a compare-and-swap both, of success and of failure."""
    if isinstance(instruction, isa.CmpXchg):
        return f"{instruction.ordering} {instruction.failordering}"
    return str(instruction.ordering)


class Code:
    """The functions of a module, ready to run in the model.

    Attributes:
        functions: the name of the function that each piece belongs to.
        pieces: each takes (variables, memory) and returns ``("go", piece, variables)`` or an operation; see
            :meth:`run`.
    """

    def __init__(self, module: ir.Module) -> None:
        self.pieces: list[Callable[[tuple[int, ...], Any], tuple[Any, ...]]] = []
        self.functions: list[str] = []
        self._entries: dict[str, tuple[int, list[int]]] = {}
        self._arrays = PRIVATE
        for function in module.functions:
            if function.blocks:
                self._translate(function)

    def entry(self, name: str, arguments: tuple[int, ...]) -> Resume:
        piece, wanted = self._entries[name]
        return Resume(piece, tuple([arguments[i] if i >= 0 else 0 for i in wanted]), -1)

    def run(self, place: Resume, result: int, memory: Any) -> tuple[Any, ...]:
        """Go on after ``place`` received ``result``; return the next operation.

        That is ``(kind, arguments, Resume)``, with the kind ``load``, ``store``, ``rmw``, ``cas``, ``call`` or
        ``system``, or ``("return", function, value)``.
        """
        piece, variables = place.piece, place.with_result(result)
        while True:
            done = self.pieces[piece](variables, memory)
            if done[0] != "go":
                return done
            _, piece, variables = done

    def _translate(self, function: ir.Function) -> None:
        first = len(self.pieces)
        self._names: dict[int, str] = {id(each): f"p{i}" for i, each in enumerate(function.args)}
        self._array_addresses: dict[int, int] = {}
        for block in function.blocks:  # the order of blocks is not the order of execution
            for each in block.instructions:
                self._names[id(each)] = f"v{len(self._names)}"
        drafts: list[_Draft] = []
        starts: dict[int, int] = {}
        for block in function.blocks:
            starts[id(block)] = len(drafts)
            drafts.append(_Draft())
            for each in block.instructions:
                draft = drafts[-1]
                if isinstance(each, _PIECE_ENDS) and not self._is_hint(each):
                    self._end_piece(draft, each, len(drafts))
                    drafts.append(_Draft())
                else:
                    self._add(draft, each, function.name)
        for draft in drafts:
            draft.successors = [starts[n] if of_block else n for n, of_block in draft.followers]
        _find_live(drafts)
        for draft in drafts:
            self.pieces.append(draft.compiled(drafts, first))
            self.functions.append(function.name)
        names = [f"p{i}" for i in range(len(function.args))]
        wanted = [names.index(name) if name in names else -1 for name in drafts[0].live]
        self._entries[function.name] = first, wanted

    @staticmethod
    def _is_hint(instruction: Any) -> bool:
        return isinstance(instruction, isa.CallInstr) and str(getattr(instruction.callee, "name", "")).startswith(
            "llvm."
        )

    def _value(self, draft: _Draft, operand: Any) -> str:
        if isinstance(operand, ir.Constant):
            return str(int(operand.constant) & _MASK)
        if id(operand) in self._array_addresses:
            return str(self._array_addresses[id(operand)])
        return draft.use(self._names[id(operand)])

    def _new(self, draft: _Draft, instruction: Any) -> str:
        name = self._names[id(instruction)]
        draft.defined.add(name)
        return name

    def _add(self, draft: _Draft, each: Any, function: str) -> None:
        if isinstance(each, isa.AllocaInstr):
            if isinstance(each.allocated_type, ir.ArrayType):
                self._array_addresses[id(each)] = self._arrays
                self._arrays += 8 * each.allocated_type.count
            return
        if isinstance(each, isa.CallInstr):
            return  # a hint to the processor
        values = [
            operand if isinstance(operand, ir.Block) else self._value_or_slot(draft, each, operand)
            for operand in each.operands
        ]
        if isinstance(each, isa.Ret):
            draft.lines.append(f"return 'return', {function!r}, {values[0] if values else '0'}")
        elif isinstance(each, isa.ConditionalBranch):
            draft.lines.append(f"if {values[0]}: return {draft.follow(id(values[1]), True)}")
            draft.lines.append(f"return {draft.follow(id(values[2]), True)}")
        elif isinstance(each, isa.Branch):
            draft.lines.append(f"return {draft.follow(id(values[0]), True)}")
        elif isinstance(each, isa.StoreInstr):
            value, target = values
            if isinstance(each.operands[1], isa.AllocaInstr):
                draft.defined.add(target)
                draft.lines.append(f"{target} = {value}")
            else:
                draft.lines.append(f"memory.write({target}, {value})")
        else:
            expression = self._expression(draft, each, values)
            draft.lines.append(f"{self._new(draft, each)} = {expression}")

    def _value_or_slot(self, draft: _Draft, each: Any, operand: Any) -> str:
        is_slot = isinstance(operand, isa.AllocaInstr) and id(operand) not in self._array_addresses
        if is_slot and isinstance(each, isa.StoreInstr):
            return self._names[id(operand)]
        return self._value(draft, operand)

    def _expression(self, draft: _Draft, each: Any, values: list[str]) -> str:
        del draft
        if isinstance(each, isa.LoadInstr):
            return values[0] if isinstance(each.operands[0], isa.AllocaInstr) else f"memory.read({values[0]})"
        if isinstance(each, isa.ICMPInstr):
            return f"int({values[0]} {_COMPARISONS[each.op]} {values[1]})"
        if isinstance(each, isa.SelectInstr):
            return f"{values[1]} if {values[0]} else {values[2]}"
        if isinstance(each, isa.ExtractValue):
            return f"{values[0]}  # whether the exchange happened"
        if isinstance(each, isa.CastInstr):
            return values[0]
        return f"({values[0]} {_ARITHMETIC[each.opname]} {values[1]}) & {_MASK}"

    def _end_piece(self, draft: _Draft, each: Any, following: int) -> None:
        callee = getattr(each, "callee", None)
        operands = each.args if isinstance(each, isa.CallInstr) else each.operands
        values = [self._value(draft, operand) for operand in operands]
        if isinstance(each, isa.LoadAtomicInstr):
            kind, arguments = "load", [*values, repr(each.ordering)]
        elif isinstance(each, isa.StoreAtomicInstr):
            kind, arguments = "store", [values[1], values[0], repr(each.ordering)]
        elif isinstance(each, isa.AtomicRMW):
            kind, arguments = "rmw", [repr(each.operation), *values, repr(each.ordering)]
        elif isinstance(each, isa.CmpXchg):
            kind, arguments = "cas", [*values, repr(each.ordering), repr(each.failordering)]
        elif isinstance(callee, ir.Function):
            kind, arguments = "call", [repr(callee.name), f"({''.join(value + ', ' for value in values)})"]
        else:
            address = self._value(draft, callee)
            kind, arguments = "system", [address, f"({''.join(value + ', ' for value in values)})"]
        result = self._names[id(each)]
        draft.result = result
        draft.lines.append(f"return {kind!r}, ({', '.join(arguments)},), {draft.follow(following, False, result)}")


class _Draft:
    """A piece of a function before its live variables are known."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.used: set[str] = set()
        self.defined: set[str] = set()
        self.result = ""
        self.followers: list[tuple[int, bool]] = []
        self.successors: list[int] = []
        self.live: list[str] = []

    def use(self, name: str) -> str:
        if name not in self.defined:
            self.used.add(name)
        return name

    def follow(self, target: int, of_block: bool, result: str = "") -> str:
        """Return a placeholder for going on at a piece, given by its number or by its block."""
        self.followers.append((target, of_block))
        return f"<{len(self.followers) - 1}{',' + result if result else ''}>"

    def compiled(self, drafts: list[_Draft], first: int) -> Callable[[tuple[int, ...], Any], tuple[Any, ...]]:
        lines = [f"{''.join(name + ', ' for name in self.live)} = variables"] if self.live else []
        for line in self.lines:
            for i, successor in enumerate(self.successors):
                live = drafts[successor].live
                line = line.replace(f"<{i}>", f"'go', {first + successor}, ({''.join(n + ', ' for n in live)})")
                if self.result:
                    filled = "".join(f"{'0' if n == self.result else n}, " for n in live)
                    at = live.index(self.result) if self.result in live else -1
                    line = line.replace(f"<{i},{self.result}>", f"Resume({first + successor}, ({filled}), {at})")
            lines.append(line)
        source = "def piece(variables, memory):\n" + "".join(f"    {line}\n" for line in lines)
        scope: dict[str, Any] = {"Resume": Resume}
        exec(source, scope)
        return scope["piece"]  # type: ignore[no-any-return]


def _find_live(drafts: list[_Draft]) -> None:
    live: list[set[str]] = [set() for _ in drafts]
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(drafts))):
            draft = drafts[i]
            after = set().union(*(live[s] for s in draft.successors)) - draft.defined
            if draft.result:
                after.discard(draft.result)
            found = after | draft.used
            if found != live[i]:
                live[i], changed = found, True
    for draft, names in zip(drafts, live):
        draft.live = sorted(names)
