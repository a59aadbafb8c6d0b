"""Lite's backend for x86-64 processors: SSE4, AVX2 and AVX-512, and MKL if it is installed."""

__version__ = "0.1.0"

__all__ = ["__version__"]
