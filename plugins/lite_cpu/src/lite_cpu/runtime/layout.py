"""The memory that native code and Python share: which 64-bit word of which block means what.

A program is read-only and may run many times at once. A pool is written by its threads while they run one
program; words that different threads write lie :data:`LINE` words apart, so that they never share a cache line.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "CHUNK_LIMIT",
    "LINE",
    "POINTER_LIMIT",
    "SLOT_WORDS",
    "STEP_LIMIT",
    "STEP_WORDS",
    "TICKET_BITS",
    "PoolField",
    "ProgramField",
    "SlotField",
    "StepField",
    "SystemField",
]

#: Words between two that different threads write: two cache lines, since processors fetch lines in pairs.
LINE = 16

#: Bits of each of the two chunk numbers in a ticket; see :class:`SlotField`.
TICKET_BITS = 20

#: A step is cut into fewer pieces than this, and a program has fewer steps than that: both must fit a ticket.
CHUNK_LIMIT = (1 << TICKET_BITS) - 1
STEP_LIMIT = (1 << 64 - 2 * TICKET_BITS) - 1

#: The most tensors that one step may have.
POINTER_LIMIT = 64


class ProgramField(IntEnum):
    """The head of a program."""

    STEPS = 0  #: address of the first step
    STEP_COUNT = 1
    SCRATCH_OFFSET = 2  #: where the scratch memory of thread 0 begins, in bytes from base 0
    SCRATCH_BYTES = 3  #: scratch memory of one thread
    SYSTEM = 4  #: address of the table of the operating system's functions


class StepField(IntEnum):
    """One call of a kernel."""

    KERNEL = 0  #: address of its code
    POINTERS = 1  #: address of its tensors: pairs (number of the base, offset in bytes)
    POINTER_COUNT = 2
    PARAMS = 3  #: address of its parameters
    TASKS = 4  #: work items in all
    GRAIN = 5  #: work items in a chunk, which is what a thread takes at a time
    CHUNKS = 6
    RUN_LENGTH = 7  #: 0: its chunks are divided among the threads; n > 0: one thread does this and n - 1 more steps


STEP_WORDS = len(StepField)


class SystemField(IntEnum):
    """Functions of the operating system: generated code has no symbols to be linked, so it is told addresses."""

    CLOCK = 0  #: ``clock_gettime``; ``QueryPerformanceCounter`` on Windows
    CLOCK_ARGUMENT = 1  #: which clock; on Windows nanoseconds in a tick
    YIELD = 2  #: ``sched_yield``
    LOCK = 3  #: ``pthread_mutex_lock``
    UNLOCK = 4  #: ``pthread_mutex_unlock``
    WAIT = 5  #: ``pthread_cond_wait``
    BROADCAST = 6  #: ``pthread_cond_broadcast``
    GET_THREAD_ID = 7  #: ``gettid``; this and the next two are 0 where the system is not Linux
    GET_PROCESSOR = 8  #: ``sched_getcpu``
    SET_AFFINITY = 9  #: ``sched_setaffinity``


class PoolField(IntEnum):
    """A pool of threads and what it is running.

    ``LINE`` words are reserved for each of the mutex, the condition and the two sets of processors, which have one
    bit per processor.
    """

    PROGRAM = 0  #: the arguments of the run in progress
    BASES = 1
    TIMES = 2
    THREADS = 3
    SYSTEM = 4
    SPIN_NANOSECONDS = 5  #: how long a thread without work spins before it yields or sleeps
    REMAINING = 1 * LINE  #: chunks of this phase that are not done, plus 1 until every ticket of it is published
    PHASE = 1 * LINE + 1  #: which phase that is
    BUSY = 2 * LINE  #: 1 while a run owns the pool
    ACTIVE = 3 * LINE  #: 1 while there may be work: nobody goes to sleep
    SLEEPERS = 4 * LINE  #: threads that sleep or are about to
    STOP = 5 * LINE  #: 1: the workers leave
    MUTEX = 6 * LINE
    CONDITION = 7 * LINE
    PROCESSORS = 8 * LINE  #: the set that the process may run on
    OTHER_PROCESSORS = 9 * LINE  #: the same without the leader's
    LEADER_PROCESSOR = 10 * LINE  #: which was left out the last time
    SLOTS = 11 * LINE  #: one slot per thread


class SlotField(IntEnum):
    """What belongs to one thread of a pool.

    A ticket says which chunks of its share nobody has taken: bits 0..19 the next one, 20..39 the end of the share,
    40..63 the phase, which is the number of its first step. Whoever increments it by compare-and-swap owns the chunk.
    """

    TICKET = 0
    POOL = LINE  #: address of the pool
    INDEX = LINE + 1  #: number of the thread
    THREAD_ID = LINE + 2  #: the system's; 0 before it has begun, and where that is not known


SLOT_WORDS = 2 * LINE
