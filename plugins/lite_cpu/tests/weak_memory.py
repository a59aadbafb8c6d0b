"""Memory as the C++20 and LLVM model has it: threads may read old values of atomics, and ordinary accesses may race.

Each atomic location has a list of messages, its modification order. A thread has a view, the position in each list
before which it reads nothing any more. A release attaches the view to its message, an acquire joins the view of the
message that it reads; sequentially consistent accesses also keep the order in which they happen. A store may take a
place before messages that its thread has not seen. What the model leaves out are loads that read a store which is later
in the order of execution (load buffering); docs/memory-order.md says why none is possible in the runtime.

Ordinary locations have one value. Of each one the model remembers its last write and the last read of each thread, and
which threads know of them: an access by a thread that does not is a data race.
"""

from __future__ import annotations

from typing import NamedTuple

from ir_threads import PRIVATE

__all__ = ["Addresses", "DataRace", "Memory", "Message", "UnknownAtomic"]

View = tuple[int, ...]

_ACQUIRES = ("acquire", "acq_rel", "seq_cst")
_RELEASES = ("release", "acq_rel", "seq_cst")
_ALL_KNOWN = -1
_MASK = (1 << 64) - 1


class DataRace(Exception):
    """Two accesses of an ordinary location, at least one a write, that no chain of synchronization orders."""


class UnknownAtomic(Exception):
    """An atomic access of a location that was not listed; ``args[0]`` is its address."""


class Message(NamedTuple):
    """A store to an atomic location.

    Attributes:
        value: what it stored.
        view: what an acquire of it learns; None if it is no release, nor continues one.
        knowledge: the ordinary accesses that an acquire learns of, as a mask.
        follows: the store of a read-modify-write, which nothing may come before.
    """

    value: int
    view: View | None
    knowledge: int
    follows: bool


class Addresses:
    """The locations of a model: initial values, constants, and which are atomic.

    Args:
        values: the initial value of each address; others are zero.
        constants: the value of each address that nothing writes.
        atomics: addresses of atomic locations.
    """

    def __init__(self, values: dict[int, int], constants: dict[int, int], atomics: list[int]) -> None:
        self.values, self.constants, self.atomics = values, constants, atomics
        self.number_of_atomic = {address: i for i, address in enumerate(atomics)}
        self.plain: dict[int, int] = {}
        self.names: dict[int, str] = {}

    def number_of_plain(self, address: int) -> int:
        return self.plain.setdefault(address, len(self.plain))

    def name(self, address: int) -> str:
        return self.names.get(address, hex(address))


class Memory:
    """The state of memory, and what each thread has seen. ``thread`` is the one that accesses it now."""

    __slots__ = ("addresses", "arrays", "knowledge", "messages", "plain", "sequential", "thread", "threads", "views")

    def __init__(self, addresses: Addresses, threads: int) -> None:
        self.addresses, self.threads, self.thread = addresses, threads, 0
        initial = [addresses.values.get(address, 0) for address in addresses.atomics]
        self.messages: list[tuple[Message, ...]] = [(Message(value, None, 0, False),) for value in initial]
        self.plain: list[int] = []
        start = (0,) * len(initial)
        self.views: list[View] = [start] * threads
        self.knowledge = [_ALL_KNOWN] * threads
        self.sequential: View = start
        self.arrays: list[dict[int, int]] = [{} for _ in range(threads)]

    def copy(self) -> Memory:
        new = object.__new__(Memory)
        new.addresses, new.threads, new.thread = self.addresses, self.threads, self.thread
        new.messages, new.plain = self.messages.copy(), self.plain.copy()
        new.views, new.knowledge = self.views.copy(), self.knowledge.copy()
        new.sequential, new.arrays = self.sequential, self.arrays.copy()
        return new

    def key(self) -> tuple[object, ...]:
        """Return a value that is equal for states without a difference that any thread could notice."""
        arrays = tuple(tuple(sorted(array.items())) for array in self.arrays)
        return (
            tuple(self.messages),
            tuple(self.plain),
            tuple(self.views),
            tuple(self.knowledge),
            self.sequential,
            arrays,
        )

    # **** ordinary locations ****

    def read(self, address: int) -> int:
        thread = self.thread
        if address >= PRIVATE:
            return self.arrays[thread].get(address, 0)
        constant = self.addresses.constants.get(address)
        if constant is not None:
            return constant
        if address in self.addresses.number_of_atomic:
            return self._read_atomic_plainly(address)
        number = self._number(address)
        if not self.knowledge[thread] & 1 << number * (self.threads + 1):
            raise DataRace(f"thread {thread} reads {self.addresses.name(address)} while another writes it")
        self._note_read(address)
        return self.plain[number]

    def write(self, address: int, value: int) -> None:
        thread = self.thread
        if address >= PRIVATE:
            self.arrays[thread] = {**self.arrays[thread], address: value}
            return
        if address in self.addresses.constants or address in self.addresses.number_of_atomic:
            raise DataRace(f"thread {thread} writes {self.addresses.name(address)}, which is constant or atomic")
        number, width = self._number(address), self.threads + 1
        written = 1 << number * width
        everything = ((1 << width) - 1) << number * width
        if self.knowledge[thread] & everything != everything:
            raise DataRace(f"thread {thread} writes {self.addresses.name(address)} while another accesses it")
        self._forget(written)
        self.knowledge[thread] |= written
        self.plain[number] = value

    def _note_read(self, address: int) -> None:
        mine = 2 << self._number(address) * (self.threads + 1) + self.thread
        self._forget(mine)
        self.knowledge[self.thread] |= mine

    def _number(self, address: int) -> int:
        number = self.addresses.number_of_plain(address)
        while len(self.plain) <= number:
            known = list(self.addresses.plain)
            self.plain.append(self.addresses.values.get(known[len(self.plain)], 0))
        return number

    def _forget(self, bit: int) -> None:
        """Record a new access: no thread knows of it yet."""
        self.knowledge = [known & ~bit for known in self.knowledge]
        for i, messages in enumerate(self.messages):
            if any(message.view is not None and message.knowledge & bit for message in messages):
                self.messages[i] = tuple([m._replace(knowledge=m.knowledge & ~bit) for m in messages])

    def _read_atomic_plainly(self, address: int) -> int:
        number = self.addresses.number_of_atomic[address]
        messages = self.messages[number]
        if self.views[self.thread][number] != len(messages) - 1:
            raise DataRace(f"thread {self.thread} reads {self.addresses.name(address)} while another writes it")
        self._note_read(address)
        return messages[-1].value

    def _check_against_plain_reads(self, location: int) -> None:
        number = self.addresses.plain.get(self.addresses.atomics[location])
        if number is not None:
            width = self.threads + 1
            everything = ((1 << width) - 1) << number * width
            if self.knowledge[self.thread] & everything != everything:
                name = self.addresses.name(self.addresses.atomics[location])
                raise DataRace(f"thread {self.thread} writes {name} while another reads it")

    # **** atomic locations ****

    def location(self, address: int) -> int:
        try:
            return self.addresses.number_of_atomic[address]
        except KeyError:
            raise UnknownAtomic(address) from None

    def readable(self, location: int, order: str) -> range:
        """Return the positions of the messages that a load may read."""
        first = self.views[self.thread][location]
        if order == "seq_cst":
            first = max(first, self.sequential[location])
        return range(first, len(self.messages[location]))

    def exchangeable(self, location: int, order: str) -> list[int]:
        """Return the positions of the messages that a read-modify-write may read."""
        messages = self.messages[location]
        return [p for p in self.readable(location, order) if p + 1 == len(messages) or not messages[p + 1].follows]

    def writable(self, location: int, order: str) -> list[int]:
        """Return the positions that a store may take."""
        messages = self.messages[location]
        first = self.readable(location, order).start + 1
        return [p for p in range(first, len(messages) + 1) if p == len(messages) or not messages[p].follows]

    def load(self, location: int, position: int, order: str) -> int:
        message = self.messages[location][position]
        self._see(location, position)
        if order in _ACQUIRES and message.view is not None:
            self.join(message.view, message.knowledge)
        return message.value

    def store(self, location: int, position: int, value: int, order: str, *, exchange: bool = False) -> None:
        """Insert a message; in an exchange it continues the one before it."""
        self._check_against_plain_reads(location)
        if position < len(self.messages[location]):
            self._shift(location, position)
        self._see(location, position)
        view: View | None = None
        knowledge = 0
        if order in _RELEASES:
            view, knowledge = self.views[self.thread], self.knowledge[self.thread]
        messages = self.messages[location]
        before = messages[position - 1]
        if exchange and before.view is not None:  # a release sequence goes on
            view = before.view if view is None else tuple(map(max, view, before.view))
            knowledge |= before.knowledge
        message = Message(value & _MASK, view, knowledge, exchange)
        self.messages[location] = (*messages[:position], message, *messages[position:])
        if order == "seq_cst":
            self.sequential = _with(self.sequential, location, position)

    def exchange(self, location: int, position: int, value: int, order: str) -> None:
        self.load(location, position, order)
        self.store(location, position + 1, value, order, exchange=True)

    def join(self, view: View, knowledge: int) -> None:
        """Let the thread learn what another has published."""
        self.views[self.thread] = tuple(map(max, self.views[self.thread], view))
        self.knowledge[self.thread] |= knowledge

    def keep_last(self, location: int) -> None:
        """Forget all messages of a location but the last, where nothing reads others."""
        self.messages[location] = self.messages[location][-1:]
        self.views = [_with(view, location, 0) for view in self.views]
        for i, messages in enumerate(self.messages):
            self.messages[i] = tuple(
                [m if m.view is None else m._replace(view=_with(m.view, location, 0)) for m in messages]
            )

    def _see(self, location: int, position: int) -> None:
        view = self.views[self.thread]
        if view[location] < position:
            self.views[self.thread] = _with(view, location, position)

    def _shift(self, location: int, position: int) -> None:
        """Make room for a message before others."""

        def shifted(view: View) -> View:
            return _with(view, location, view[location] + 1) if view[location] >= position else view

        self.views = [shifted(view) for view in self.views]
        self.sequential = shifted(self.sequential)
        for i, messages in enumerate(self.messages):
            self.messages[i] = tuple([m if m.view is None else m._replace(view=shifted(m.view)) for m in messages])

    def drop_old_messages(self) -> None:
        """Remove the messages that every thread has seen a later one of."""
        first = tuple(map(min, *self.views)) if len(self.views) > 1 else self.views[0]
        if not any(first):
            return

        def moved(view: View) -> View:
            return tuple([max(0, position - start) for position, start in zip(view, first)])

        self.views = [moved(view) for view in self.views]
        self.sequential = moved(self.sequential)
        for i, messages in enumerate(self.messages):
            kept = messages[first[i] :]
            self.messages[i] = tuple([m if m.view is None else m._replace(view=moved(m.view)) for m in kept])


def _with(view: View, location: int, position: int) -> View:
    return (*view[:location], position, *view[location + 1 :])
