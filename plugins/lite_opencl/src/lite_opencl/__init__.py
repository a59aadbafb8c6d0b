"""Lite's backend for OpenCL devices: GPUs, accelerators, and processors by way of PoCL.

From the lowest layer up: ``device/`` (devices, their memory and queues), ``tensors``, ``addressing``, ``scalar_ops/``
and ``chains`` (element-wise computation as C), ``programs/`` (kernels as source and as binaries; the source files are
in ``kernels/``), ``tuning/`` (measuring which kernels are fastest), ``compiled/`` (running and saving a compiled
partition), ``lowering/`` (from nodes to launches), ``backend``.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
