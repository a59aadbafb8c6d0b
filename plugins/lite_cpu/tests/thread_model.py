"""All executions of the runtime's generated code in a model: every schedule, every old value that memory may give.

The threads run the code that the runtime is compiled from (:mod:`ir_threads`) in memory of the C++20 model
(:mod:`weak_memory`). Kernels, the clock, the mutex and the condition variable are part of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ir_threads import Code, Resume
from thread_scenarios import (
    ACTIVE,
    FUNCTION,
    KERNEL,
    MUTEX,
    PROCESSOR_OF_LEADER,
    Scenario,
    initial_values,
    names,
    scripts,
)
from weak_memory import Addresses, DataRace, Memory, UnknownAtomic

from lite_cpu.runtime.layout import SystemField

__all__ = ["Scenario", "Violation", "explore"]


class Violation(Exception):
    """An execution that breaks a promise of the runtime: what was found, and the operations that lead there."""


class _Thread(NamedTuple):
    """A thread: its next operation, the places to return to, and how far it is in its script."""

    operation: tuple[Any, ...]
    stack: tuple[Resume, ...]
    script: int


_DONE = ("done", ())


def explore(code: Code, scenario: Scenario, limit: int = 10_000_000) -> int:
    """Run every execution of a scenario and return the number of states.

    Raises:
        Violation: an execution breaks a promise, or cannot end.
    """
    atomics = [MUTEX]
    while True:
        try:
            return _Exploration(code, scenario, atomics).run(limit)
        except UnknownAtomic as unknown:
            atomics.append(unknown.args[0])


class _State(NamedTuple):
    memory: Memory
    threads: tuple[_Thread, ...]
    waiting: frozenset[int] = frozenset()  # threads in the condition variable's queue
    awake: tuple[str, ...] = ()  # the functions ``lead`` and ``lite_stop`` that have woken all, until the run ends

    def key(self) -> tuple[object, ...]:
        return self.memory.key(), self.threads, self.waiting, self.awake


class _Exploration:
    def __init__(self, code: Code, scenario: Scenario, atomics: list[int]) -> None:
        self._code, self._scenario = code, scenario
        values, constants = initial_values(scenario)
        self._addresses = Addresses(values, constants, atomics)
        self._addresses.names = names(scenario)
        self._scripts = scripts(scenario)
        self._history: dict[int, tuple[int, str]] = {}

    def run(self, limit: int) -> int:
        first = self._start()
        numbers = {first.key(): 0}
        pending, reached_from, ends = [(0, first)], [[]], []
        while pending:
            number, state = pending.pop()
            if all(thread.operation == _DONE for thread in state.threads):
                ends.append(number)
                continue
            found = 0
            try:
                for label, following in self._following(state):
                    found += 1
                    key = following.key()
                    known = numbers.get(key)
                    if known is None:
                        known = numbers[key] = len(numbers)
                        self._history[known] = number, label
                        reached_from.append([])
                        pending.append((known, following))
                    reached_from[known].append(number)
            except (DataRace, Violation) as error:
                raise Violation(f"{error}\n{self._trace(number)}") from None
            if not found:
                raise Violation(f"every thread waits for ever\n{self._trace(number)}")
            if len(numbers) > limit:
                raise Violation(f"more than {limit} states")
        self._check_that_all_end(reached_from, ends)
        return len(numbers)

    def _check_that_all_end(self, reached_from: list[list[int]], ends: list[int]) -> None:
        can_end, pending = set(ends), list(ends)
        while pending:
            for before in reached_from[pending.pop()]:
                if before not in can_end:
                    can_end.add(before)
                    pending.append(before)
        for number in range(len(reached_from)):
            if number not in can_end:
                raise Violation(f"the threads can no longer finish\n{self._trace(number)}")

    def _trace(self, number: int) -> str:
        lines = []
        while number in self._history:
            number, label = self._history[number]
            lines.append(label)
        return "\n".join(reversed(lines))

    def _start(self) -> _State:
        memory, threads = Memory(self._addresses, len(self._scripts)), []
        state = _State(memory, tuple([_Thread(_DONE, (), 0)] * len(self._scripts)))
        for thread in range(len(self._scripts)):
            self._awake = state.awake
            threads.append(self._script_goes_on(state, thread, 0))
        return state._replace(threads=tuple(threads))

    # **** threads ****

    def _script_goes_on(self, state: _State, thread: int, position: int) -> _Thread:
        memory = state.memory
        memory.thread = thread
        script = self._scripts[thread]
        while position < len(script):
            kind, *arguments = script[position]
            position += 1
            if kind == "write":
                memory.write(*arguments)
            elif kind == "check":
                address, value = arguments
                found = memory.read(address)
                if found != value:
                    raise Violation(f"{self._addresses.name(address)} is {found}, expected {value}")
            elif kind == "call":
                name, values = arguments
                return self._goes_on(state, thread, (self._code.entry(name, values),), 0, position)
            else:
                return _Thread((kind, tuple(arguments)), (), position)
        return _Thread(_DONE, (), position)

    def _goes_on(self, state: _State, thread: int, stack: tuple[Resume, ...], result: int, script: int) -> _Thread:
        """Return the thread after the operation that it did: it runs until its next one that others can notice."""
        memory = state.memory
        memory.thread = thread
        while stack:
            kind, arguments, *rest = self._code.run(stack[-1], result, memory)
            if kind == "return":
                result, stack = rest[0], stack[:-1]
                if arguments == "wake":
                    if state.waiting:
                        raise Violation(f"thread {min(state.waiting)} sleeps on although it was to be woken")
                    self._awake = (*self._awake, self._code.functions[stack[-1].piece])
                continue
            stack = (*stack[:-1], rest[0])
            if kind == "call":
                stack, result = (*stack, self._code.entry(*arguments)), 0
            elif kind == "system" and arguments[0] == KERNEL:
                self._kernel(memory, *arguments[1])
                result = 0
            elif kind == "system":
                field = SystemField(arguments[0] - FUNCTION)
                if field in (SystemField.YIELD, SystemField.SET_AFFINITY):
                    result = 0
                elif field is SystemField.GET_THREAD_ID:
                    result = 1000 + thread
                elif field is SystemField.GET_PROCESSOR:
                    result = PROCESSOR_OF_LEADER
                elif field is SystemField.CLOCK and self._scenario.times:
                    result = self._clock(memory, arguments[1][1], 1)
                else:
                    return _Thread((field.name, arguments[1]), stack, script)
            else:
                return _Thread((kind, arguments), stack, script)
        return self._script_goes_on(state, thread, script)

    @staticmethod
    def _clock(memory: Memory, time: int, nanoseconds: int) -> int:
        memory.write(time, 0)
        memory.write(time + 8, nanoseconds)
        return 0

    @staticmethod
    def _kernel(memory: Memory, resolved: int, params: int, begin: int, end: int, scratch: int) -> None:
        """Mark the work items, and check those of the step before and that no other thread uses the scratch memory."""
        marks, before = memory.read(resolved), memory.read(resolved + 8)
        memory.write(scratch, begin)
        for item in range(memory.read(params)):
            if memory.read(before + 8 * item) != 1:
                raise Violation("a step began before the one before it was done")
        for item in range(begin, end):
            memory.write(marks + 8 * item, memory.read(marks + 8 * item) + 1)

    # **** steps of the whole ****

    def _following(self, state: _State) -> Iterator[tuple[str, _State]]:
        for thread, (operation, _, _) in enumerate(state.threads):
            yield from getattr(self, "_do_" + operation[0].lower())(state, thread, *operation[1])

    def _after(self, state: _State, thread: int, result: int = 0) -> _State:
        """Let the thread go on after its operation changed ``state``, a copy."""
        before = state.threads[thread]
        self._awake = state.awake
        after = self._goes_on(state, thread, before.stack, result, before.script)
        state.memory.drop_old_messages()
        threads = (*state.threads[:thread], after, *state.threads[thread + 1 :])
        return state._replace(threads=threads, awake=self._awake)

    @staticmethod
    def _copy(state: _State, thread: int) -> _State:
        memory = state.memory.copy()
        memory.thread = thread
        return state._replace(memory=memory)

    def _label(self, thread: int, text: str, address: int, order: str, value: int) -> str:
        return f"    thread {thread}: {text} {self._addresses.name(address)} {order} {value:#x}"

    def _do_done(self, state: _State, thread: int) -> Iterator[tuple[str, _State]]:
        yield from ()

    def _do_load(self, state: _State, thread: int, address: int, order: str) -> Iterator[tuple[str, _State]]:
        state.memory.thread = thread
        location = state.memory.location(address)
        for position in state.memory.readable(location, order):
            new = self._copy(state, thread)
            value = new.memory.load(location, position, order)
            yield self._label(thread, "load", address, order, value), self._after(new, thread, value)

    def _do_store(
        self, state: _State, thread: int, address: int, value: int, order: str
    ) -> Iterator[tuple[str, _State]]:
        state.memory.thread = thread
        location = state.memory.location(address)
        for position in state.memory.writable(location, order):
            new = self._copy(state, thread)
            new.memory.store(location, position, value, order)
            if address == ACTIVE and value == 0:
                new = new._replace(awake=tuple([name for name in new.awake if name != "lead"]))
            yield self._label(thread, "store", address, order, value), self._after(new, thread)

    def _do_rmw(
        self, state: _State, thread: int, operation: str, address: int, value: int, order: str
    ) -> Iterator[tuple[str, _State]]:
        state.memory.thread = thread
        location = state.memory.location(address)
        for position in state.memory.exchangeable(location, order):
            new = self._copy(state, thread)
            old = new.memory.messages[location][position].value
            stored = {"add": old + value, "sub": old - value, "xchg": value}[operation]
            new.memory.exchange(location, position, stored, order)
            yield self._label(thread, operation, address, order, stored), self._after(new, thread, old)

    def _do_cas(
        self, state: _State, thread: int, address: int, expected: int, value: int, success: str, failure: str
    ) -> Iterator[tuple[str, _State]]:
        state.memory.thread = thread
        location = state.memory.location(address)
        free = state.memory.exchangeable(location, success)
        for position in state.memory.readable(location, failure):
            found = state.memory.messages[location][position].value
            if found != expected:
                new = self._copy(state, thread)
                new.memory.load(location, position, failure)
                yield self._label(thread, "cas fails", address, failure, found), self._after(new, thread, 0)
            elif position in free:
                new = self._copy(state, thread)
                new.memory.exchange(location, position, value, success)
                yield self._label(thread, "cas", address, success, value), self._after(new, thread, 1)

    def _do_clock(self, state: _State, thread: int, _: int, time: int) -> Iterator[tuple[str, _State]]:
        for nanoseconds in (1, 2):
            new = self._copy(state, thread)
            self._clock(new.memory, time, nanoseconds)
            yield f"    thread {thread}: clock {nanoseconds}", self._after(new, thread)

    def _do_lock(self, state: _State, thread: int, mutex: int) -> Iterator[tuple[str, _State]]:
        location = state.memory.location(mutex)
        if state.memory.messages[location][-1].value == 0:
            new = self._copy(state, thread)
            self._take_mutex(new.memory)
            yield f"    thread {thread}: lock", self._after(new, thread)

    def _do_relock(self, state: _State, thread: int, mutex: int) -> Iterator[tuple[str, _State]]:
        yield from self._do_lock(state, thread, mutex)

    def _do_unlock(self, state: _State, thread: int, mutex: int) -> Iterator[tuple[str, _State]]:
        del mutex
        new = self._copy(state, thread)
        self._give_mutex(new.memory)
        yield f"    thread {thread}: unlock", self._after(new, thread)

    def _do_wait(self, state: _State, thread: int, condition: int, mutex: int) -> Iterator[tuple[str, _State]]:
        del condition
        if state.awake:
            raise Violation(f"thread {thread} goes to sleep after {state.awake[0]} has woken all")
        new = self._copy(state, thread)
        self._give_mutex(new.memory)
        sleeper = new.threads[thread]._replace(operation=("asleep", (mutex,)))
        threads = (*new.threads[:thread], sleeper, *new.threads[thread + 1 :])
        yield f"    thread {thread}: sleeps", new._replace(threads=threads, waiting=new.waiting | {thread})

    def _do_asleep(self, state: _State, thread: int, mutex: int) -> Iterator[tuple[str, _State]]:
        yield from ()

    def _do_broadcast(self, state: _State, thread: int, condition: int) -> Iterator[tuple[str, _State]]:
        del condition
        new = self._copy(state, thread)
        threads = tuple(
            [
                each._replace(operation=("relock", each.operation[1])) if number in state.waiting else each
                for number, each in enumerate(new.threads)
            ]
        )
        yield f"    thread {thread}: broadcast", self._after(new._replace(threads=threads, waiting=frozenset()), thread)

    def _do_join(self, state: _State, thread: int, other: int) -> Iterator[tuple[str, _State]]:
        if state.threads[other].operation == _DONE:
            new = self._copy(state, thread)
            new.memory.join(new.memory.views[other], new.memory.knowledge[other])
            yield f"    thread {thread}: joins {other}", self._after(new, thread)

    @staticmethod
    def _take_mutex(memory: Memory) -> None:
        location = memory.location(MUTEX)
        memory.exchange(location, len(memory.messages[location]) - 1, 1, "acquire")
        memory.keep_last(location)

    @staticmethod
    def _give_mutex(memory: Memory) -> None:
        location = memory.location(MUTEX)
        memory.store(location, len(memory.messages[location]), 0, "release")
        memory.keep_last(location)
