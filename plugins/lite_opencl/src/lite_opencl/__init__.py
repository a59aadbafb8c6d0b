"""Lite's backend for OpenCL devices: GPUs, accelerators, and processors by way of PoCL.

From the ground up: ``device/`` (devices, their memory and queues), ``tensors``, ``addressing``, ``scalar_ops/`` and
``chains`` (what kernels compute, as C), ``programs/`` (kernels as source and as binaries; the files themselves are in
``kernels/``), ``tuning/`` (which kernels are fastest), ``compiled/`` (a compiled partition, run and saved),
``lowering/`` (from nodes to launches), ``backend``.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
