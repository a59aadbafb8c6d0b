"""Generated code of the threads that run one program together.

A phase is either one step, cut into chunks, or several consecutive steps that one thread runs as a single chunk. Each
thread has a share of the chunks of a phase, so that its caches still hold what it wrote in the phase before. When its
share is done, it takes chunks from the shares of other threads (work stealing), so that a thread that the system has
suspended does not delay the others. The thread that finishes the last chunk publishes the next phase.

A thread never touches a run that is over: outside of the pool's memory it reads only while it holds a part of the run,
which is a chunk that it took or the publication of a phase. The run cannot end before the thread gives that part back
by subtracting it from the pool's REMAINING. For the same reason no worker is needed: a run is correct, though slower,
if any of them sleeps, is late or has ended.
"""

from __future__ import annotations

from lite_cpu.runtime.affinity import emit_affinity
from lite_cpu.runtime.codegen import Int64, Module
from lite_cpu.runtime.executor import call_kernel, step_address, thread_scratch
from lite_cpu.runtime.layout import (
    CHUNK_LIMIT,
    POINTER_LIMIT,
    SLOT_FIELDS,
    TICKET_BITS,
    PoolField,
    ProgramField,
    ResumeField,
    SlotField,
    StepField,
    SystemField,
)

__all__ = ["emit_work_stealing"]

#: Ticket of thread 0 when the run is over. Its next chunk is not below its end, so no thread can take it.
_FINISHED = (1 << 64) - 1
_PAUSES_BETWEEN_CLOCK_READINGS = 128


def emit_work_stealing(code: Module) -> None:
    """Emit ``lead`` for the thread that starts a run, ``lite_worker`` for the others, and ``lite_stop``."""
    emit_affinity(code)
    _emit_publish(code)
    _emit_execute(code)
    _emit_finish(code)
    _emit_sleep(code)
    _emit_wake(code)
    _emit_wait(code)
    _emit_work(code)
    _emit_lead(code)
    _emit_worker(code)
    _emit_stop(code)


def _next(ticket: Int64) -> Int64:
    return ticket & CHUNK_LIMIT


def _end(ticket: Int64) -> Int64:
    return (ticket >> TICKET_BITS) & CHUNK_LIMIT


def _phase(ticket: Int64) -> Int64:
    return ticket >> 2 * TICKET_BITS


def _slot(pool: Int64, thread: Int64) -> Int64:
    return pool.at(PoolField.SLOTS).at(thread * SLOT_FIELDS)


def _emit_publish(code: Module) -> None:
    """Emit ``publish(pool, phase)``: publish a phase and return 1, or end or suspend the run and return 0."""
    with code.function("publish", 2, result=True) as f:
        pool, phase = f.arguments
        program, held = pool[PoolField.PROGRAM], f.variable(0)
        pool[PoolField.PHASE] = phase
        with f.if_else(phase.compare(">=", program[ProgramField.STEP_COUNT])) as (over, more):
            with over:
                pool.at(PoolField.SLOTS).store(_FINISHED, "release")  # read by the leader's load in ``work``
            with more:
                held.set(1)
                threads, chunks = pool[PoolField.THREADS], step_address(program, phase)[StepField.CHUNKS]
                # NOTE: the caller holds 1 more than the chunks. Otherwise this phase could be finished, and the next
                # one published, before the last ticket is written below, which would overwrite a ticket of the next.
                # Relaxed: who takes a chunk acquires its ticket below, and therefore subtracts from this number.
                pool.at(PoolField.REMAINING).store(chunks + 1, "monotonic")
                share = (chunks + threads - 1) // threads
                with f.count(threads) as thread:
                    begin = (thread * share).minimum(chunks)
                    end = (begin + share).minimum(chunks)
                    ticket = (phase << 2 * TICKET_BITS) | (end << TICKET_BITS) | begin
                    _slot(pool, thread).store(ticket, "release")  # read by the compare-and-swap in ``work``
        f.ret(held.get())


def _emit_execute(code: Module) -> None:
    """Emit ``execute(pool, thread, ticket, resolved, is_resolved)``: run the ticket's next chunk, owned by the caller.

    ``resolved`` keeps the addresses of the step's tensors for the caller's next chunk of the same phase.
    """
    with code.function("execute", 5) as f:
        pool, thread, ticket, resolved, is_resolved = f.arguments
        program, bases, times = pool[PoolField.PROGRAM], pool[PoolField.BASES], pool[PoolField.TIMES]
        phase = _phase(ticket)
        step, scratch = step_address(program, phase), thread_scratch(program, bases, thread)
        with f.if_else(step[StepField.RUN_LENGTH].compare("!=", 0)) as (whole_steps, chunk_of_step):
            with whole_steps:
                resume = pool[PoolField.RESUME]
                following = f.call("run_steps", program, bases, times, phase, 0, scratch, resume)
                pool[PoolField.FOLLOWING] = following
            with chunk_of_step:
                with f.if_(is_resolved.compare("==", 0)):
                    f.call("resolve", step, bases, resolved)
                begin = _next(ticket) * step[StepField.GRAIN]
                end = (begin + step[StepField.GRAIN]).minimum(step[StepField.TASKS])
                call_kernel(f, step, resolved, begin, end, scratch)


def _emit_finish(code: Module) -> None:
    """Emit ``finish(pool)``, called after the last chunk of a phase; return the result of ``publish``."""
    with code.function("finish", 1, result=True) as f:
        (pool,) = f.arguments
        program, times, phase = pool[PoolField.PROGRAM], pool[PoolField.TIMES], pool[PoolField.PHASE]
        run_length, following = step_address(program, phase)[StepField.RUN_LENGTH], f.variable(phase + 1)
        with f.if_else(run_length.compare("!=", 0)) as (whole_steps, chunks_of_step):
            with whole_steps:
                following.set(pool[PoolField.FOLLOWING])
            with chunks_of_step:
                f.call("stamp", times, phase, pool[PoolField.SYSTEM])
        f.ret(f.call("publish", pool, following.get()))


def _emit_work(code: Module) -> None:
    """Emit ``work(pool, thread, held)``: take part in runs, the leader until its run is over, workers until the stop.

    ``held`` is 1 if the caller has published a phase and holds that part of the run, else 0.
    """
    with code.function("work", 3) as f:
        pool, thread, initially_held = f.arguments
        own_slot = _slot(pool, thread)
        resolved = f.array(POINTER_LIMIT)
        held, seen = f.variable(initially_held), f.variable(0)
        victim, is_resolved = f.variable(0), f.variable(0)
        with f.loop() as loop:
            threads = pool.at(PoolField.THREADS).load("monotonic")  # Python may write it while a first worker runs
            is_resolved.set(0)
            victim.set(thread)
            with f.count(threads) as turn:
                slot = _slot(pool, victim.get())
                with f.loop() as share:
                    # Acquire for the leader, which returns when it has read the ticket of a run that is over: it sees
                    # what all threads wrote. A chunk is acquired by the exchange below.
                    ticket = slot.load("acquire")
                    with f.if_(turn.compare("==", 0)):
                        seen.set(ticket)
                    share.leave_if(_next(ticket).compare(">=", _end(ticket)))
                    with f.if_(slot.compare_and_swap(ticket, ticket + 1, "acquire")):  # from ``publish``
                        f.call("execute", pool, thread, ticket, resolved, is_resolved.get())
                        is_resolved.set(1)
                        held.set(held.get() + 1)
                victim.set(victim.get() + 1)
                with f.if_(victim.get().compare("==", threads)):
                    victim.set(0)
            with f.if_(held.get().compare("!=", 0)):
                given_back = held.get()
                # Release what this thread wrote to the last one that subtracts, which acquires it from all others.
                remaining = pool.at(PoolField.REMAINING).fetch("sub", given_back, "acq_rel")
                held.set(0)
                with f.if_(remaining.compare("==", given_back)):
                    held.set(f.call("finish", pool))
            loop.leave_if(seen.get().compare("==", _FINISHED))
            with f.if_(held.get().compare("==", 0)):
                must_leave = f.call("wait", pool, thread, own_slot, seen.get())
                loop.leave_if(must_leave.compare("!=", 0))


def _emit_wait(code: Module) -> None:
    """Emit ``wait(pool, thread, slot, seen)``: wait for a ticket other than ``seen``; return 1 if the thread must exit.

    It spins first. Afterwards it yields the processor repeatedly while a run is in progress, since the thread that it
    waits for may have no processor; between runs it sleeps.
    """
    with code.function("wait", 4, result=True) as f:
        pool, thread, slot, seen = f.arguments
        system, deadline, must_leave = pool[PoolField.SYSTEM], f.variable(0), f.variable(0)
        with f.loop() as loop:
            with f.count(_PAUSES_BETWEEN_CLOCK_READINGS):
                loop.leave_if(slot.load("monotonic").compare("!=", seen))  # ``work`` reads it again
                f.pause()
            with f.if_(thread.compare("!=", 0)):
                must_leave.set(pool.at(PoolField.STOP).load("monotonic"))
            loop.leave_if(must_leave.get().compare("!=", 0))
            time = f.call("now", system)
            with f.if_(deadline.get().compare("==", 0)):
                deadline.set(time + pool[PoolField.SPIN_NANOSECONDS])
            with f.if_(time.compare(">", deadline.get())):
                active = pool.at(PoolField.ACTIVE).load("monotonic")  # ``sleep`` reads it again
                with f.if_else(active.compare("!=", 0)) as (in_a_run, between_runs):
                    with in_a_run:
                        f.call_address(system[SystemField.YIELD])
                    with between_runs:
                        f.call("sleep", pool)
                        deadline.set(0)
        f.ret(must_leave.get())


def _emit_sleep(code: Module) -> None:
    """Emit ``sleep(pool)``: block until a run begins or the pool stops."""
    with code.function("sleep", 1) as f:
        (pool,) = f.arguments
        system, mutex = pool[PoolField.SYSTEM], pool.at(PoolField.MUTEX)
        f.call_address(system[SystemField.LOCK], mutex)
        pool.at(PoolField.SLEEPERS).fetch("add", 1, "seq_cst")  # before the two loads, see ``wake``
        with f.loop() as loop:
            active, stop = pool.at(PoolField.ACTIVE).load("seq_cst"), pool.at(PoolField.STOP).load("seq_cst")
            loop.leave_if((active | stop).compare("!=", 0))
            f.call_address(system[SystemField.WAIT], pool.at(PoolField.CONDITION), mutex)
        pool.at(PoolField.SLEEPERS).fetch("sub", 1, "monotonic")
        f.call_address(system[SystemField.UNLOCK], mutex)


def _emit_wake(code: Module) -> None:
    """Emit ``wake(pool)``: wake all sleepers after a change of ACTIVE or STOP.

    NOTE: no sleeper is missed. ``wake`` is called after the change and reads SLEEPERS; ``sleep`` increments SLEEPERS
    and then reads ACTIVE and STOP. All four accesses are sequentially consistent, therefore either the sleeper sees
    the change, or ``wake`` sees the sleeper. The sleeper holds the mutex from that read until it waits: once ``wake``
    has locked the mutex, the sleeper is waiting and receives the broadcast.
    """
    with code.function("wake", 1) as f:
        (pool,) = f.arguments
        system, mutex = pool[PoolField.SYSTEM], pool.at(PoolField.MUTEX)
        with f.if_(pool.at(PoolField.SLEEPERS).load("seq_cst").compare("!=", 0)):
            f.call_address(system[SystemField.LOCK], mutex)
            f.call_address(system[SystemField.UNLOCK], mutex)
            f.call_address(system[SystemField.BROADCAST], pool.at(PoolField.CONDITION))


def _emit_lead(code: Module) -> None:
    """Emit ``lead(pool, program, bases, times, resume)``: a run as thread 0 of a pool that the caller owns."""
    with code.function("lead", 5) as f:
        pool, program, bases, times, resume = f.arguments
        pool[PoolField.PROGRAM] = program
        pool[PoolField.BASES] = bases
        pool[PoolField.TIMES] = times
        pool[PoolField.RESUME] = resume
        held = f.call("publish", pool, f.call("start", program, times, resume))
        pool.at(PoolField.ACTIVE).store(1, "seq_cst")  # before the load in ``wake``
        with f.if_(pool.at(PoolField.SLEEPERS).load("monotonic").compare("!=", 0)):
            f.call("keep_off", pool)  # a matter of speed: an old number does no harm
        f.call("wake", pool)
        f.call("work", pool, 0, held)
        # Relaxed: the next leader stores 1 after it, since it acquires BUSY.
        pool.at(PoolField.ACTIVE).store(0, "monotonic")
        with f.if_(resume.compare("!=", 0)):
            resume[ResumeField.NEXT] = pool[PoolField.PHASE]


def _emit_worker(code: Module) -> None:
    """Emit ``void *lite_worker(void *slot)``, the start routine of the other threads."""
    with code.function("lite_worker", 1, result=True, exported=True) as f:
        (slot,) = f.arguments
        f.call("register_worker", slot[SlotField.POOL], slot)
        f.call("work", slot[SlotField.POOL], slot[SlotField.INDEX], 0)
        f.ret(0)


def _emit_stop(code: Module) -> None:
    """Emit ``void lite_stop(void *pool)``: the workers exit, each after its current chunk."""
    with code.function("lite_stop", 1, exported=True) as f:
        (pool,) = f.arguments
        pool.at(PoolField.STOP).store(1, "seq_cst")  # before the load in ``wake``
        f.call("wake", pool)
