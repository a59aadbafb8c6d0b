"""PartitionIdentity: shared by the partitions of a session that differ in sizes only."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

from lite_core.backend import Options, Partition, PartitionIdentity
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.memory.scratch import ScratchPool
from lite_core.plugins import plugins_with
from lite_core.schedule import select_devices
from lite_core.schedule.planner import Planner
from lite_core.session import Session, load

Array = np.ndarray[Any, Any]


def sandwich() -> Graph:
    """Exp, which the backend of these tests does not support, between two Relus, which it supports."""
    b = GraphBuilder("sandwich")
    x = b.input("x", "float32", ["n", 2])
    b.output(b.add("Relu", [b.add("Exp", [b.add("Relu", [x])])]), "y")
    return b.build()


def session_of(graph: Graph) -> Session:
    backend = KernelBackend("toy")
    backend.kernel("Relu", dtypes=["float32"])(lambda x: np.maximum(x, 0))
    return load(graph, backend="toy", plugins=plugins_with(backend))


def identities(session: Session, *shape: int) -> list[PartitionIdentity]:
    return [part.identity for part, _ in session.plan({"x": shape}).partitions]


def test_partitions_of_other_sizes_have_the_same_identity() -> None:
    session = session_of(sandwich())
    first = identities(session, 3, 2)
    assert len(set(first)) == 3
    assert identities(session, 5, 2) == first


def test_sessions_share_no_identities() -> None:
    graph = sandwich()
    one, other = session_of(graph), session_of(graph)
    assert set(identities(one, 3, 2)).isdisjoint(identities(other, 3, 2))


def test_other_rank_has_another_identity() -> None:
    b = GraphBuilder("squeeze")
    x = b.input("x", "float32", ["n", 2])
    b.output(b.add("Relu", [b.add("Squeeze", [x])]), "y")
    session = session_of(b.build())
    assert identities(session, 3, 2) == identities(session, 4, 2)
    assert set(identities(session, 1, 2)).isdisjoint(identities(session, 3, 2))


def test_identity_does_not_outlive_its_session() -> None:
    session = session_of(sandwich())
    alive = weakref.ref(identities(session, 3, 2)[0])
    gc.collect()
    assert alive() is not None
    del session
    gc.collect()
    assert alive() is None


def test_different_bodies_have_different_identities() -> None:
    backend = KernelBackend("toy")
    backend.kernel("Relu")(lambda x: np.maximum(x, 0))
    selection = select_devices("toy", plugins_with(backend), fallback="never")
    planner = Planner(selection, {}, Options(), ScratchPool(), [])
    b = GraphBuilder("body")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    graph = b.build()
    (then, _), (again, _), (other, _) = (
        planner.plan_body(graph, prefix).partitions[0] for prefix in ("if/then/", "if/then/", "if/else/")
    )
    assert then.identity is again.identity
    assert then.identity is not other.identity


def test_partition_gets_a_new_identity_by_default() -> None:
    graph = sandwich()
    first, second = Partition("all", graph), Partition("all", graph)
    assert first.identity is not second.identity
    assert first == second
