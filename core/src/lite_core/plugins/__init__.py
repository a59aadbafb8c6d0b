"""Finding and loading plugins and calling their hooks, each isolated from the others.

A plugin is a module named by an entry point of the group ``lite.plugins``. It declares the version of the contract it
was written for, and implements hooks::

    from lite_core.plugins import hookimpl

    LITE_API_VERSION = 1

    @hookimpl
    def lite_backends():
        return [MyBackend()]

Discovery reads metadata and imports nothing. A failure of a plugin at any phase is recorded with its traceback, shown
by ``lite plugins`` and ``lite doctor``, and does not affect other plugins.

Environment variables: ``LITE_STRICT_PLUGINS=1`` raises failures, ``LITE_TRACE_PLUGINS=1`` logs every step,
``LITE_BACKENDS=x86,opencl`` lists the backends that may be used, and ``LITE_PLUGINS=x86=lite-x86`` chooses a package if
several claim a name.
"""

from lite_core.plugins import backends, hooks, manager, record
from lite_core.plugins.backends import *
from lite_core.plugins.hooks import *
from lite_core.plugins.manager import *
from lite_core.plugins.record import *

__all__ = [name for module in (backends, hooks, manager, record) for name in module.__all__]
