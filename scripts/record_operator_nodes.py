"""Write the model `operators.lite`: a node for each operator in each of its element types, for `lite ops --backend`.

The nodes are cases of the conformance suite. Of each operator and element type, the case is taken that most of the
installed backends accept, and of those the first one: it stands for ordinary use of the operator.

    python scripts/record_operator_nodes.py

Run it after a change of the opset, on a machine where every backend is installed; those without a device are asked
about the device that they describe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lite_conformance.cases.op_cases import OpTable
from lite_conformance.cases.plugins.brought import every_table
from lite_core.backend import Yes
from lite_core.ir import DType, Graph, Value
from lite_core.plugins import default_plugins
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_tools.conversion.targets import find_targets
from lite_tools.examining.operator_nodes import FILE
from lite_tools.writing import write_model

_BACKENDS = ("x86", "arm", "opencl", "numba", "onnxruntime")
#: The cases of an operator and element type that backends are asked about: later ones are rarer.
_ASKED = 12


def main() -> int:
    """Write the model."""
    targets, missing = find_targets(list(_BACKENDS), default_plugins())
    candidates = [target.candidate for target in targets if target.candidate is not None]
    if missing or len(candidates) < len(_BACKENDS):
        print(f"error: not every backend can be asked: {missing or [t.absent for t in targets]}", file=sys.stderr)
        return 1
    whole = Graph("operators")
    for table in every_table():
        if not table.is_of_plugin:
            for dtype in table.dtypes:
                _add(whole, table, dtype, candidates)
    write_model(FILE, whole)
    print(f"{FILE}: {len(whole.nodes)} nodes, {Path(FILE).stat().st_size} bytes")
    return 0


def _add(whole: Graph, table: OpTable, dtype: DType, candidates: list[Candidate]) -> None:
    """Add the node of an operator in an element type to the graph."""
    of_type = (case for _, of, case in table.cases() if of is dtype)
    graphs = [case.build(dtype, 0)[0] for case in islice(of_type, _ASKED)]
    if not graphs:
        return
    graph = max(graphs, key=lambda each: _acceptances(each, candidates))
    prefix = f"{table.definition.qualified_name}/{dtype}"
    for value in _values(graph):
        value.name = f"{prefix}/{value.name}"
    graph.nodes[-1].name = prefix
    whole.inputs += graph.inputs
    whole.outputs += graph.outputs
    whole.nodes += graph.nodes
    whole.constants.update(graph.constants)


def _values(graph: Graph) -> Iterator[Value]:
    for scope in graph.walk():
        yield from scope.defined()


def _acceptances(graph: Graph, candidates: list[Candidate]) -> int:
    return sum(all(isinstance(ask(each, node), Yes) for node in graph.nodes) for each in candidates)


if __name__ == "__main__":
    sys.exit(main())
