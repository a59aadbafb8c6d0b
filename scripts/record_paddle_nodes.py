"""Record which nodes Paddle's operators become, for ``lite ops --paddle``: the file recorded_nodes.json of lite-paddle.

    python scripts/record_paddle_nodes.py             the whole file; needs paddlepaddle, and takes some minutes
    python scripts/record_paddle_nodes.py --scanned   only the operators of the scan; keeps the others as they are

The programs are those of the scan in lite-paddle's tests; for operators that the scan leaves to other tests, those of
these tests. In them, a node belongs to the operator that its origin names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lite_core.errors import LiteError
from lite_core.ir import Graph, Node
from lite_core.session import make_ready
from lite_paddle.recorded_nodes import Recorder, recorded_nodes, recorded_operators
from workspace import ROOT

__all__ = ["FILE", "record_scanned"]

TESTS = ROOT / "plugins/lite_paddle/tests"
FILE = ROOT / "plugins/lite_paddle/src/lite_paddle/recorded_nodes.json"
#: The element types that every backend is expected to have kernels for, where it has any.
_USUAL = {np.dtype(name) for name in ("float32", "int32", "int64", "bool")}
#: How many programs of an operator are recorded.
_PROGRAMS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scanned", action="store_true", help="keep the operators that other tests have as they are")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(TESTS))
    recorder = Recorder()
    # Before the tests' helpers import what it replaces.
    listener = None if options.scanned else _Listener(recorder)
    record_scanned(recorder)
    if listener is None:
        _keep_others(recorder)
    else:
        _record_others(listener)
    FILE.write_text(recorder.text(), encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size // 1024} KiB, {len(json.loads(recorder.text())['operators'])} operators")
    return 0


def record_scanned(recorder: Recorder) -> None:
    """Record the operators of the scan; lite-paddle's tests must be importable."""
    from scan.comparing import graph_of
    from scan.drawing import draw_cases, spaces
    from scan.goldens import COUNT, SEED, VERSIONS

    for operator in spaces():
        cases = draw_cases(SEED, COUNT, [operator])
        usual = [case for case in cases if all(a.dtype in _USUAL for arrays in case.inputs.values() for a in arrays)]
        recorder.add(operator, [])
        for case in (usual or cases)[:_PROGRAMS]:
            recorder.add(operator, make_ready(graph_of(case, VERSIONS[1])).graph.nodes)


def _keep_others(recorder: Recorder) -> None:
    from scan.drawing import spaces

    nodes = recorded_nodes()
    for operator, numbers in recorded_operators().items():
        if operator not in spaces():
            recorder.add(operator, [nodes[number] for number in numbers])


def _record_others(listener: _Listener) -> None:
    """Run the tests that have the other operators, and record what their programs become."""
    import pytest
    from scan.elsewhere import elsewhere

    listener.wanted = set(elsewhere())
    tests = sorted({str(TESTS / test) for test in elsewhere().values()})
    for part in ([], ["--part", "models"]):
        if pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *part, *tests]):
            sys.exit("a test failed, so that the file would lack nodes")
    lacking = sorted(listener.wanted - listener.seen)
    if lacking:
        sys.exit(f"no program has {', '.join(lacking)}: name another test in scan/elsewhere.txt")


class _Listener:
    """Records the nodes of every program that is lowered from now on, for the wanted operators."""

    def __init__(self, recorder: Recorder) -> None:
        from lite_paddle import lowering
        from lite_paddle.lowering import program as module

        self.recorder = recorder
        self.wanted: set[str] = set()
        self.seen: set[str] = set()
        original = module.lower

        def lower(program: Any, **options: Any) -> Graph:
            graph = original(program, **options)
            self._record(program, graph)
            return graph

        lowering.lower = module.lower = lower

    def _record(self, program: Any, graph: Graph) -> None:
        ops = [op for op in program.block.walk() if op.type in self.wanted]
        types = {op.original_type or op.type: op.type for op in ops}
        for operator in set(types.values()):
            self.recorder.add(operator, [])
            self.seen.add(operator)
        if not types:
            return
        try:
            ready = make_ready(graph).graph
        except LiteError:
            return  # a program that a test builds to fail
        for node in _outer_nodes(ready):
            if node.origin is not None and node.origin.op in types:
                self.recorder.add(types[node.origin.op], [node])


def _outer_nodes(graph: Graph) -> Iterator[Node]:
    for inner in graph.walk():
        yield from inner.nodes


if __name__ == "__main__":
    sys.exit(main())
