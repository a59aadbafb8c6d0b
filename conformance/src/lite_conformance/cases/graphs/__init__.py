"""Level 3: graphs of several operators: fusion, shared values, several partitions, changing shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lite_conformance.cases.case import Case
from lite_conformance.cases.tensors import short_name
from lite_core.ir import DType

__all__ = ["cases"]


def cases() -> Iterator[Case]:
    """Yield the cases of level 3.

    Graphs of fixed shapes run unchanged as one partition, and in float32 (and types that are not floating) also
    in a session with passes, as ``graph[f32,residual-block,optimized]``.
    """
    from lite_conformance.cases.graphs import blocks, chains, control, dynamic, integers, partitions, sequences, sharing
    from lite_conformance.cases.graphs.running import run_compiled, run_in_session

    for table in (chains.graphs, sharing.graphs, blocks.graphs, sequences.graphs, integers.graphs, control.graphs):
        for case in table:
            name = f"{short_name(case.dtype)},{case.label}"
            raw = partial(run_in_session, optimize=False) if case.only_session else run_compiled
            yield Case(f"graph[{name}]", 3, "graphs", partial(raw, case=case), case.op, case.dtype.value)
            if case.dtype is DType.FLOAT32 or not case.dtype.is_floating:
                optimized = partial(run_in_session, case=case, optimize=True)
                yield Case(f"graph[{name},optimized]", 3, "graphs", optimized, case.op, case.dtype.value)
    for case in dynamic.graphs:
        for suffix, optimize in (("", False), (",optimized", True)):
            run = partial(run_in_session, case=case, optimize=optimize)
            name = f"graph[{short_name(case.dtype)},dynamic-{case.label}{suffix}]"
            yield Case(name, 3, "graphs", run, case.op, case.dtype.value)
    yield from partitions.cases()
