"""OpenCL devices: which there are, their memory, queues and uploaded constants.

From the ground up: :mod:`errors`, :mod:`devices` (which there are), :mod:`queues`, :mod:`pinned` (main memory for
transfers), :mod:`memory` (where tensors live), :mod:`constants` and :mod:`images` (weights there), :mod:`runtime` (all
that a process has for one device, its programs and what was tuned among it).
"""
