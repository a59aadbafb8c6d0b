"""Lite plugin for Paddle models: reads ``.pdmodel``, ``__model__`` and PIR ``.json``, recognised by content."""

__version__ = "0.1.0"

__all__ = ["__version__"]
