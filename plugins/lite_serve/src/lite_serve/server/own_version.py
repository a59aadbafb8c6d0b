"""The version of this package, as the servers tell it."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["VERSION"]

VERSION = version("lite-serve")
