"""The ``.lite`` file: a graph, its constants, and for each target the plans and the backends' saved state.

::

    write_model("model.lite", graph, optimized=True, targets=targets, pieces={"saved/0": code, "saved/1": weights})
    file = ModelFile.open("model.lite")     # maps it; checks header, size and table
    graph = file.graph()                    # constants are read-only views of the mapping
    code = file.section("saved/0")          # checksum verified on first access

:mod:`lite_core.container.layout` describes the binary layout, :mod:`lite_core.container.graph_codec` the graph's JSON.
"""

from lite_core.container.format import LITE_FORMAT
from lite_core.container.layout import FORMAT_VERSION, OPSET
from lite_core.container.reader import ModelFile
from lite_core.container.records import PartitionRecord, PlanRecord, Section, TargetRecord
from lite_core.container.writer import write_model

__all__ = [
    "FORMAT_VERSION",
    "LITE_FORMAT",
    "OPSET",
    "ModelFile",
    "PartitionRecord",
    "PlanRecord",
    "Section",
    "TargetRecord",
    "write_model",
]
