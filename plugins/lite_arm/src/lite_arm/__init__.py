"""Lite's backend for 64-bit ARM processors: NEON, and what later processors add."""

__version__ = "0.1.0"

__all__ = ["__version__"]
