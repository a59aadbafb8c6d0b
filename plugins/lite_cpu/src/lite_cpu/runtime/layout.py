"""Layout of the structs shared by native code and Python; every field is a 64-bit integer.

A program is read-only, and any number of runs may use it at once. The threads of a pool write to the pool while they
run one program. Fields written by different threads are :data:`LINE` fields apart, so that they never share a cache
line.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "CHUNK_LIMIT",
    "LINE",
    "POINTER_LIMIT",
    "SLOT_FIELDS",
    "STEP_FIELDS",
    "STEP_LIMIT",
    "SUSPENDED",
    "TICKET_BITS",
    "PoolField",
    "ProgramField",
    "ResumeField",
    "SlotField",
    "StepField",
    "SystemField",
]

#: Distance, in fields, of two fields written by different threads: two cache lines, since processors prefetch in pairs.
LINE = 16

#: Bits of each of the two chunk numbers in a ticket; see :class:`SlotField`.
TICKET_BITS = 20

#: Exclusive limits of the chunks of a step and of the steps of a program: both numbers must fit into a ticket.
CHUNK_LIMIT = (1 << TICKET_BITS) - 1
STEP_LIMIT = (1 << 64 - 2 * TICKET_BITS) - 1

#: Maximum number of tensors of a step.
POINTER_LIMIT = 64

#: Bit that is set in the number of the next step if the run was suspended before it.
SUSPENDED = 1 << 62


class ProgramField(IntEnum):
    """Header of a program."""

    STEPS = 0  #: address of the first step
    STEP_COUNT = 1
    SCRATCH_OFFSET = 2  #: offset of the scratch memory of thread 0 from base 0, in bytes
    SCRATCH_BYTES = 3  #: scratch memory of one thread
    SYSTEM = 4  #: address of the table of the operating system's functions


class StepField(IntEnum):
    """A step: one call of a kernel."""

    KERNEL = 0  #: address of the kernel's code
    POINTERS = 1  #: address of the table of tensors: pairs (number of the base, offset in bytes)
    POINTER_COUNT = 2
    PARAMS = 3  #: address of the parameters
    TASKS = 4  #: total number of work items
    GRAIN = 5  #: work items of a chunk; a thread takes one chunk at a time
    CHUNKS = 6
    RUN_LENGTH = 7  #: 0: the chunks are divided among threads; n > 0: so many steps from this one on are not divided
    JUMP = 8  #: distance of the step that follows if the first integer of the first tensor is not 0; 0: the next step


STEP_FIELDS = len(StepField)


class ResumeField(IntEnum):
    """The place where a run begins and ends. A run is suspended when it has taken long and jumps backwards."""

    NEXT = 0  #: the first step of the run; afterwards the one after its last, with :data:`SUSPENDED` before its end
    SLICE = 1  #: nanoseconds after which it may be suspended
    END = 2  #: the moment when they are over, set by native code


class SystemField(IntEnum):
    """Addresses of functions of the operating system; the generated code is not linked against any library."""

    CLOCK = 0  #: ``clock_gettime``; ``QueryPerformanceCounter`` on Windows
    CLOCK_ARGUMENT = 1  #: id of the clock; on Windows nanoseconds per tick
    YIELD = 2  #: ``sched_yield``
    LOCK = 3  #: ``pthread_mutex_lock``
    UNLOCK = 4  #: ``pthread_mutex_unlock``
    WAIT = 5  #: ``pthread_cond_wait``
    BROADCAST = 6  #: ``pthread_cond_broadcast``
    GET_THREAD_ID = 7  #: ``gettid``; this and the next two are 0 on systems other than Linux
    GET_PROCESSOR = 8  #: ``sched_getcpu``
    SET_AFFINITY = 9  #: ``sched_setaffinity``


class PoolField(IntEnum):
    """A thread pool and the state of its current run.

    ``LINE`` fields are reserved for each of the mutex, the condition variable and the two sets of processors, which
    have one bit per processor.
    """

    PROGRAM = 0  #: the arguments of the run in progress
    BASES = 1
    TIMES = 2
    THREADS = 3
    SYSTEM = 4
    SPIN_NANOSECONDS = 5  #: time that a thread without work spins before it yields or sleeps
    RESUME = 6  #: address of :class:`ResumeField`, or 0; an argument of the run, too
    REMAINING = 1 * LINE  #: unfinished chunks of the current phase, plus 1 until all its tickets are published
    PHASE = 1 * LINE + 1  #: number of the current phase; after a run, that of the step where it would go on
    FOLLOWING = 1 * LINE + 2  #: the step after a phase that one thread has run
    BUSY = 2 * LINE  #: 1 while a run owns the pool
    ACTIVE = 3 * LINE  #: 1 while there may be work: no thread goes to sleep
    SLEEPERS = 4 * LINE  #: number of threads that sleep or are about to
    STOP = 5 * LINE  #: 1: the workers exit
    MUTEX = 6 * LINE
    CONDITION = 7 * LINE
    PROCESSORS = 8 * LINE  #: set of processors that the process may run on
    OTHER_PROCESSORS = 9 * LINE  #: the same set without the leader's processor
    LEADER_PROCESSOR = 10 * LINE  #: processor excluded from OTHER_PROCESSORS
    SLOTS = 11 * LINE  #: one slot per thread


class SlotField(IntEnum):
    """State of one thread of a pool.

    A ticket describes the chunks of the thread's share that no thread has taken yet: bits 0..19 are the next chunk,
    20..39 the end of the share, 40..63 the phase, which is the number of its first step. The thread that increments
    the ticket by compare-and-swap owns the chunk.
    """

    TICKET = 0
    POOL = LINE  #: address of the pool
    INDEX = LINE + 1  #: number of the thread
    THREAD_ID = LINE + 2  #: id given by the operating system; 0 before the thread starts, and where it is not known


SLOT_FIELDS = 2 * LINE
