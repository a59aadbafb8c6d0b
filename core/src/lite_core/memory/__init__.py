"""Memory of runs: main memory as a memory space, the arena planner, reused memory blocks, and zero copy."""

from lite_core.memory.arena import ArenaPlan, plan_arena
from lite_core.memory.host_memory import HostMemory, read_only
from lite_core.memory.scratch import ScratchBlock, ScratchPool
from lite_core.memory.sharing import can_share, is_shareable, new_array

__all__ = [
    "ArenaPlan",
    "HostMemory",
    "ScratchBlock",
    "ScratchPool",
    "can_share",
    "is_shareable",
    "new_array",
    "plan_arena",
    "read_only",
]
