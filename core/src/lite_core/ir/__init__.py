"""The graph IR: SSA values, nodes, constants, tensor types, symbolic dimensions, and the verifier."""

from lite_core.ir import dims, graph, pages, panels, types, verifier
from lite_core.ir.dims import *
from lite_core.ir.graph import *
from lite_core.ir.pages import *
from lite_core.ir.panels import *
from lite_core.ir.types import *
from lite_core.ir.verifier import *

__all__ = [name for module in (dims, graph, pages, panels, types, verifier) for name in module.__all__]
