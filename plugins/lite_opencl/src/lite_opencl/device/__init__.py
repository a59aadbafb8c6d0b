"""OpenCL devices, their memory, queues and uploaded constants.

From the lowest layer up: :mod:`errors`, :mod:`devices` (discovery), :mod:`queues`, :mod:`pinned` (main memory for
transfers), :mod:`memory` (allocations for tensors), :mod:`constants` and :mod:`images` (weights on the device),
:mod:`runtime` (everything that a process has for one device, including programs and tuning results).
"""
