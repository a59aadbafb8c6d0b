"""Native code that keeps workers off the processor of the thread that they are going to help.

Linux may put a thread that wakes up on the processor of the one that woke it, even with another idle, above all in
virtual machines, and move it only after one to three milliseconds, which is longer than many a run. So before workers
are woken that one processor is taken from the set that they may run on. They stay free to move among the others.
"""

from __future__ import annotations

from lite_cpu.runtime.codegen import Module
from lite_cpu.runtime.layout import LINE, SLOT_WORDS, PoolField, SlotField, SystemField

__all__ = ["emit_affinity"]

_PROCESSORS = 64 * LINE  # as many as a set of LINE words has bits


def emit_affinity(code: Module) -> None:
    """Adds ``register_worker(pool, slot)`` and ``keep_off(pool)``; both do nothing where the system is not Linux."""
    with code.function("register_worker", 2) as f:
        pool, slot = f.arguments
        get_thread_id = pool[PoolField.SYSTEM][SystemField.GET_THREAD_ID]
        with f.if_(get_thread_id.compare("!=", 0)):
            slot.at(SlotField.THREAD_ID).store(f.call_address(get_thread_id) & 0xFFFFFFFF, "release")
    with code.function("keep_off", 1) as f:
        (pool,) = f.arguments
        system = pool[PoolField.SYSTEM]
        with f.if_(system[SystemField.GET_THREAD_ID].compare("!=", 0)):
            processor = f.call_address(system[SystemField.GET_PROCESSOR]) & 0xFFFFFFFF
            is_new = processor.compare("!=", pool[PoolField.LEADER_PROCESSOR])
            with f.if_(is_new), f.if_(processor.compare("<", _PROCESSORS)):
                pool[PoolField.LEADER_PROCESSOR] = processor
                allowed, others = pool.at(PoolField.PROCESSORS), pool.at(PoolField.OTHER_PROCESSORS)
                with f.count(LINE) as i:
                    others[i] = allowed[i]
                place = processor >> 6
                others[place] = others[place] - (others[place] & (f.word(1) << (processor & 63)))
                with f.count(pool[PoolField.THREADS], start=1) as thread:
                    slot = pool.at(PoolField.SLOTS).at(thread * SLOT_WORDS)
                    thread_id = slot.at(SlotField.THREAD_ID).load("acquire")
                    # NOTE: 0, a worker that has not begun, would mean the caller. Of a thread that has ended, or with
                    # no other processor, the system refuses the call, and nothing is lost.
                    with f.if_else(thread_id.compare("!=", 0)) as (began, not_yet):
                        with began:
                            f.call_address(system[SystemField.SET_AFFINITY], thread_id, LINE * 8, others)
                        with not_yet:
                            pool[PoolField.LEADER_PROCESSOR] = -1  # so that the next run tries again
