"""Memory of runs: main memory as a memory space, and memory blocks that are reused.

The arena planner is in :mod:`lite_core.memory.arena`, zero copy in :mod:`lite_core.memory.sharing`.
"""

from lite_core.memory.host_memory import HostMemory, read_only
from lite_core.memory.scratch import ScratchPool

__all__ = ["HostMemory", "ScratchPool", "read_only"]
