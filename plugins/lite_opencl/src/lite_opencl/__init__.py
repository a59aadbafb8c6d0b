"""Lite's backend for OpenCL devices: GPUs, accelerators, and processors by way of PoCL."""

__version__ = "0.1.0"

__all__ = ["__version__"]
