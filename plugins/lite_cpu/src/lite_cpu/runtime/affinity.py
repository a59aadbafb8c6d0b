"""Generated code that keeps worker threads off the processor of the thread that starts a run.

Linux may wake a thread on the processor of the thread that woke it, even when another processor is idle. This happens
mostly in virtual machines, and Linux moves the thread only after one to three milliseconds, which is longer than many
runs. Therefore the leader's processor is removed from the affinity mask of the workers before they are woken. They
stay free to move among the other processors.
"""

from __future__ import annotations

from lite_cpu.runtime.codegen import Module
from lite_cpu.runtime.layout import LINE, SLOT_FIELDS, PoolField, SlotField, SystemField

__all__ = ["emit_affinity"]

_PROCESSORS = 64 * LINE  # a set of processors has LINE fields of 64 bits


def emit_affinity(code: Module) -> None:
    """Emit ``register_worker(pool, slot)`` and ``keep_off(pool)``; both do nothing on systems other than Linux."""
    with code.function("register_worker", 2) as f:
        pool, slot = f.arguments
        get_thread_id = pool[PoolField.SYSTEM][SystemField.GET_THREAD_ID]
        with f.if_(get_thread_id.compare("!=", 0)):
            slot.at(SlotField.THREAD_ID).store(f.call_address(get_thread_id) & 0xFFFFFFFF, "monotonic")
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
                index = processor >> 6
                others[index] = others[index] - (others[index] & (f.int64(1) << (processor & 63)))
                with f.count(pool[PoolField.THREADS], start=1) as thread:
                    slot = pool.at(PoolField.SLOTS).at(thread * SLOT_FIELDS)
                    thread_id = slot.at(SlotField.THREAD_ID).load("monotonic")
                    # NOTE: a worker that has not started yet has thread id 0, which sched_setaffinity takes for the
                    # caller. If the thread has ended, or no other processor remains, the call fails without harm.
                    with f.if_else(thread_id.compare("!=", 0)) as (started, not_started):
                        with started:
                            f.call_address(system[SystemField.SET_AFFINITY], thread_id, LINE * 8, others)
                        with not_started:
                            pool[PoolField.LEADER_PROCESSOR] = -1  # the next run tries again
