"""Fixtures that several test files share."""

from installed_plugins import site

__all__ = ["site"]
