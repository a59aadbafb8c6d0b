"""The ``.lite`` file: a graph, its constants, and for each target the plans and the backends' saved state.

::

    file = ModelFile.open("model.lite")     # maps it; checks header, size and table
    graph = file.graph()                    # constants are read-only views of the mapping
    code = file.section("code/0")           # checksum verified on first access

:mod:`lite_core.container.layout` describes the binary layout, :mod:`lite_core.container.graph_decoder` the graph's
JSON, and :mod:`lite_core.container.trust` which code is used. ``lite_tools.writing`` writes such files.
"""

from lite_core.container import format, layout, mapping, reader, records
from lite_core.container.format import *
from lite_core.container.layout import *
from lite_core.container.mapping import *
from lite_core.container.reader import *
from lite_core.container.records import *

__all__ = [name for module in (format, layout, mapping, reader, records) for name in module.__all__]
