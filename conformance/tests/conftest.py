"""Shared fixtures."""

from __future__ import annotations

from browsers import browser

__all__ = ["browser"]
