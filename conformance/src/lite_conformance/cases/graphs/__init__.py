"""Level 3: graphs of several operators: fusion, shared values, several partitions, changing shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lite_conformance.cases.case import Case
from lite_conformance.cases.tensors import short_name
from lite_core.ir import DType

if TYPE_CHECKING:
    from lite_conformance.cases.graphs.draft import GraphCase, GraphTable

__all__ = ["cases", "cases_of_graphs", "tables"]


def cases() -> Iterator[Case]:
    """Yield the cases of level 3.

    Graphs of fixed shapes run unchanged as one partition, and in float32 (and types that are not floating) also
    in a session with passes, as ``graph[f32,residual-block,optimized]``.
    """
    from lite_conformance.cases.graphs import dynamic, partitions
    from lite_conformance.cases.graphs.running import examples_of, run_in_session

    for table in tables():
        yield from cases_of_graphs(table)
    for case in dynamic.graphs:
        name, examples = f"{short_name(case.dtype)},dynamic-{case.label}", partial(examples_of, case=case)
        run = partial(run_in_session, case=case, optimize=False)
        yield Case(f"graph[{name}]", 3, "graphs", run, case.op, case.dtype.value, examples=examples)
        optimized = partial(run_in_session, case=case, optimize=True)
        yield Case(f"graph[{name},optimized]", 3, "graphs", optimized, case.op, case.dtype.value)
    yield from partitions.cases()


def tables() -> list[GraphTable]:
    """Return the tables of graphs of fixed shapes."""
    from lite_conformance.cases.graphs import (
        blocks,
        chains,
        control,
        integers,
        not_a_number,
        quantized,
        sequences,
        sharing,
    )

    modules = (chains, sharing, blocks, sequences, integers, control, not_a_number, quantized)
    return [module.graphs for module in modules]


def cases_of_graphs(table: Iterable[GraphCase], prefix: str = "") -> Iterator[Case]:
    """Yield the cases of graphs; a prefix of their labels keeps those of packages apart: ``acme-fuse,``."""
    from lite_conformance.cases.graphs.running import examples_of, run_compiled, run_in_session

    for case in table:
        name = f"{short_name(case.dtype)},{prefix}{case.label}"
        raw = partial(run_in_session, optimize=False) if case.only_session else run_compiled
        run, examples = partial(raw, case=case), partial(examples_of, case=case)
        yield Case(f"graph[{name}]", 3, "graphs", run, case.op, case.dtype.value, examples=examples)
        if case.dtype is DType.FLOAT32 or not case.dtype.is_floating:
            optimized = partial(run_in_session, case=case, optimize=True)
            yield Case(f"graph[{name},optimized]", 3, "graphs", optimized, case.op, case.dtype.value)
