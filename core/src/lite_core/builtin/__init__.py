"""The built-in backends: the reference ``host`` and the dry run ``null``."""

from lite_core.builtin.host import HostBackend
from lite_core.builtin.null import NullBackend

__all__ = ["HostBackend", "NullBackend"]
