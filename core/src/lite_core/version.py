"""The version of lite-core. A module of its own, so that others can say it without importing the whole package."""

__all__ = ["__version__"]

__version__ = "0.1.0"
