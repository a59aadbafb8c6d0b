"""Division of steps among threads: the estimate of their time, rows of a thread's own, steps that one thread runs."""

from __future__ import annotations

import pytest
from agreement import normal, single_node
from levels import backend_for, runnable_machines

from lite_core.backend import Options
from lite_cpu.kernels.gemm import GemmShape
from lite_cpu.kernels.shares import Items, gives_own_rows, time_of_threads
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.machine import X86_64_V4


@pytest.mark.parametrize(
    ("items", "threads", "time"),
    [
        ([(4.0, 4), (3.0, 4)], 1, 28.0),
        ([(4.0, 4), (3.0, 4)], 2, 16.0),  # the second thread begins with the short ones, and then takes a long one
        ([(3.0, 2), (1.0, 6)], 2, 6.0),
        ([(5.0, 1), (1.0, 5)], 3, 5.0),  # the first thread is busy: the second and third share the rest of its items
        ([(1.0, 1)], 4, 1.0),
    ],
)
def test_threads_begin_with_equal_shares_and_then_take_from_each_other(items: Items, threads: int, time: float) -> None:
    assert time_of_threads(items, threads) == time


def test_threads_multiply_rows_of_their_own_if_those_can_be_divided_evenly() -> None:
    def rows_of_item(rows: int) -> int:
        return GemmShape(rows, 512, 512, a_row=512, c_row=512).blocks(X86_64_V4, 2)[0]

    assert gives_own_rows(196, rows_of_item(196), 2)
    assert rows_of_item(49) == 49  # four tiles of rows for one thread and three for the other would take longer


@pytest.mark.parametrize(("size", "op", "is_divided"), [
    (14, "GlobalAveragePool", False),
    (224, "GlobalAveragePool", True),
    (14, "Neg", False),
    (14, "Softmax", True),
])  # fmt: skip
def test_one_thread_runs_a_short_step_that_only_moves_data(size: int, op: str, is_divided: bool) -> None:
    machine, threads = runnable_machines()[-1], 2
    shared = backend_for(machine)._share()
    graph = single_node(op, [normal(1, 240, size, size)], {}, channels_last=True)
    step = lower_graph(graph, Options(threads=threads), shared.library, shared.weights).steps[0]
    assert (step.grain_for(threads, 1 << 20) < step.tasks) == is_divided
