"""Runtime: every work item runs exactly once and after the previous step, for any scheduling of the threads."""

from __future__ import annotations

import functools
import logging
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from lite_cpu.machine import ARM_V8, X86_64_V2
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.loading import LoadedCode, load
from lite_cpu.machine_code.objects import compile_ir
from lite_cpu.runtime import (
    ALIGNMENT,
    Program,
    ProgramError,
    ProgramTables,
    Step,
    ThreadPool,
    pool,
    program,
    shared_pool,
    usable_threads,
)
from lite_cpu.runtime.codegen import Module
from lite_cpu.runtime.layout import CHUNK_LIMIT, POINTER_LIMIT, SLOT_FIELDS, PoolField, SlotField, StepField
from lite_cpu.runtime.native import load_native, native
from lite_cpu.runtime.native_code import runtime_ir

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
posix = pytest.mark.skipif(sys.platform == "win32", reason="the runtime has no threads on Windows")

#: Seconds after which a condition that never becomes true, or a call that never returns, counts as a failure.
PATIENCE = 120


@functools.cache
def kernels() -> LoadedCode:
    """Kernels: ``mark`` marks its work items and counts errors; ``meet`` needs as many threads as work items.

    ``count_down`` decrements its flag.
    """
    machine = X86_64_V2 if platform.machine().lower() in ("x86_64", "amd64") else ARM_V8
    code = Module(machine.triple)
    with code.function("mark", 5, exported=True) as f:
        pointers, params, begin, end, scratch = f.arguments
        marks, marks_before, errors = pointers[0], pointers[1], pointers[2]
        tasks_before, pauses = params[0], params[1]
        scratch.store(begin, "monotonic")
        with f.count(tasks_before) as i, f.if_(marks_before[i].compare("!=", marks[begin] + 1)):
            errors.fetch("add", 1, "monotonic")
        with f.count(end, start=begin) as i:
            with f.count(pauses):
                f.pause()
            marks[i] = marks[i] + 1
        with f.if_(scratch.load("monotonic").compare("!=", begin)):
            errors.fetch("add", 1, "monotonic")
    with code.function("count_down", 5, exported=True) as f:
        flag = f.arguments[0][0]
        flag[0] = flag[0] - 1
    with code.function("meet", 5, exported=True) as f:
        pointers, params, begin, _, _ = f.arguments
        arrivals, met = pointers[0], pointers[1]
        arrivals.fetch("add", 1, "monotonic")
        with f.count(params[1]), f.if_(arrivals.load("monotonic").compare("==", params[0])):
            met[begin] = 1
            f.ret()
    return load([compile_ir(str(code.ir), machine)])


@dataclass
class Marking:
    """A program of ``mark`` steps, and the total number of work items."""

    program: Program
    items: int

    def run(self, threads: int, times: np.ndarray | None = None) -> None:
        """Run the program in separate memory and check each mark."""
        scratch = aligned_bytes(self.program.scratch_bytes(threads))
        marks, errors = np.zeros(self.items + 1, np.int64), np.zeros(1, np.int64)
        self.program.run([scratch.ctypes.data, marks.ctypes.data, errors.ctypes.data], threads, times)
        assert (marks[:-1] == 1).all(), f"work items that did not run exactly once: {np.flatnonzero(marks[:-1] != 1)}"
        assert marks[-1] == 0, "a work item behind the last one"
        assert errors[0] == 0, f"{errors[0]} times a step started too early, or threads shared scratch memory"


def marking(steps: list[tuple[int, int]], pauses: int = 0, arena_bytes: int = 0) -> Marking:
    """Return a program with one step per ``(tasks, grain)``; each work item executes ``pauses`` pause instructions."""
    code, items, before, made = kernels(), 0, 0, []
    for tasks, grain in steps:
        pointers = [(1, 8 * items), (1, 8 * (items - before)), (2, 0)]
        made.append(Step(code.address(0, "mark"), pointers, [before, pauses], tasks, grain, f"{tasks} by {grain}"))
        items, before = items + tasks, tasks
    return Marking(Program(made, arena_bytes, thread_scratch_bytes=8, owners=[code]), items)


def aligned_bytes(size: int) -> np.ndarray:
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    return memory[-memory.ctypes.data % ALIGNMENT :]


@pytest.fixture
def any_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Allow pools of more threads than processors, and close them after the test."""
    pools: dict[tuple[int, int], ThreadPool | None] = {}
    monkeypatch.setattr(pool, "usable_threads", lambda threads: threads)
    monkeypatch.setattr(pool, "_pools", pools)
    yield
    for each in set(pools.values()):
        if each is not None:
            each.close()


def random_steps(seed: int) -> list[tuple[int, int]]:
    pick = random.Random(seed)
    return [(pick.choice((0, 1, 2, 7, 40, 200)), pick.choice((1, 1, 2, 5, 60))) for _ in range(pick.randint(0, 12))]


@pytest.mark.usefixtures("any_threads")
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_every_item_runs_once_and_after_the_previous_step(threads: int) -> None:
    for seed in range(1000):
        try:
            marking(random_steps(seed), arena_bytes=seed % 100).run(threads)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {threads} threads: {error}") from error


@pytest.mark.usefixtures("any_threads")
def test_program_runs_many_times() -> None:
    marks = marking([(9, 1), (1, 1), (1, 1), (30, 4), (1, 1)])
    for _ in range(3000):
        marks.run(2)


@posix
@pytest.mark.usefixtures("any_threads")
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_work_at_the_same_time(threads: int) -> None:
    arrivals, met = np.zeros(1, np.int64), np.zeros(threads, np.int64)
    pointers = [(1, 0), (2, 0)]
    step = Step(kernels().address(0, "meet"), pointers, [threads, 1 << 34], tasks=threads, grain=1)
    Program([step], 0, 0, [kernels()]).run([0, arrivals.ctypes.data, met.ctypes.data], threads)
    assert met.tolist() == [1] * threads


@pytest.mark.usefixtures("any_threads")
def test_eight_python_threads_run_programs_at_once() -> None:
    failures: list[BaseException] = []

    def run_often(marks: Marking, threads: int) -> None:
        try:
            for _ in range(200):
                marks.run(threads)
        except BaseException as error:
            failures.append(error)

    shared = marking([(20, 3), (1, 1), (64, 1), (5, 1)], pauses=3)
    runners = [threading.Thread(target=run_often, args=(shared, 1 + i % 3)) for i in range(8)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join(PATIENCE)
    assert not any(runner.is_alive() for runner in runners)
    assert failures == []


@posix
@pytest.mark.usefixtures("any_threads")
def test_run_does_not_wait_for_a_busy_pool() -> None:
    marks, busy_pool = marking([(20, 3), (8, 1)]), shared_pool(2, native())
    assert busy_pool is not None
    fields = fields_of(busy_pool)
    fields[PoolField.BUSY] = 1  # as if another run used the pool
    marks.run(2)
    assert fields[PoolField.BUSY] == 1
    fields[PoolField.BUSY] = 0
    marks.run(2)
    assert fields[PoolField.BUSY] == 0


@posix
def test_pool_without_workers_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ThreadPool(3)
    closed.close()
    monkeypatch.setattr(program, "shared_pool", lambda threads, code: closed)
    for seed in range(100):
        marking(random_steps(seed)).run(3)


@posix
@pytest.mark.usefixtures("any_threads")
def test_each_runtime_has_its_own_pool() -> None:
    """The workers of a pool run the runtime of a model file only for programs of that file."""
    # Code behind the last function makes it another runtime, as that of another version would be.
    image = CodeImage.from_bytes(native().image)
    other = load_native(image._replace(code=image.code + b"\xcc").to_bytes())
    own, others = shared_pool(2, native()), shared_pool(2, other)
    assert own is shared_pool(2, native())
    assert others is shared_pool(2, other)
    assert own is not None
    assert others is not None
    assert own is not others
    assert own._native.worker != others._native.worker


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert time.monotonic() < deadline, "the condition was not met"


def wait_until_asleep(idle: ThreadPool) -> None:
    wait_until(lambda: bool(fields_of(idle)[PoolField.SLEEPERS] == idle.threads - 1))


@pytest.mark.skipif(usable_threads(2) < 2, reason="the worker needs a second processor to be moved to")
@linux
def test_woken_thread_is_kept_off_the_processor_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    others = ThreadPool(2)
    monkeypatch.setattr(program, "shared_pool", lambda threads, code: others)
    wait_until_asleep(others)
    marking([(20, 1)]).run(2)
    slot = PoolField.SLOTS + SLOT_FIELDS
    worker, mine = fields_of(others)[slot + SlotField.THREAD_ID], fields_of(others)[PoolField.LEADER_PROCESSOR]
    assert mine in os.sched_getaffinity(0)
    assert os.sched_getaffinity(worker) == os.sched_getaffinity(0) - {mine}
    others.close()


@linux
def test_idle_threads_sleep() -> None:
    before = threads_of_process()
    idle = ThreadPool(3)
    workers = threads_of_process() - before
    wait_until_asleep(idle)

    def context_switches() -> list[str]:
        """Return how often each worker was scheduled out, voluntarily or not."""
        status = [Path(f"/proc/self/task/{thread}/status").read_text().splitlines() for thread in sorted(workers)]
        return [line for lines in status for line in lines if "ctxt_switches" in line]

    def is_idle_for_half_a_second() -> bool:
        """Return True if no worker ran for half a second; a spinning thread uses much time or is preempted often."""
        start, switches = time.process_time(), context_switches()
        time.sleep(0.5)
        return time.process_time() - start < 0.25 and context_switches() == switches

    assert len(workers) == 2
    wait_until(is_idle_for_half_a_second)
    idle.close()


def threads_of_process() -> set[str]:
    return set(os.listdir("/proc/self/task"))


@linux
@pytest.mark.usefixtures("any_threads")
def test_threads_do_not_accumulate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed and collected pools leave no threads; Linux lists a joined thread for a short time, so the test waits."""
    marks, before, pools = marking([(20, 1), (3, 1)]), threads_of_process(), {}
    with monkeypatch.context() as patch:
        patch.setattr(program, "shared_pool", lambda threads, code: pools[threads])
        for round_ in range(1000):
            threads = 2 + round_ % 3
            pools[threads] = ThreadPool(threads)
            marks.run(threads)
            if round_ % 2:
                pools[threads].close()  # the other pools are garbage-collected
            del pools[threads]
            wait_until(lambda: threads_of_process() <= before)
    for _ in range(1000):
        marking([(20, 1)]).run(2)
    wait_until(lambda: len(threads_of_process() - before) <= 1)  # the worker of the shared pool


@posix
@pytest.mark.usefixtures("any_threads")
def test_fork_while_another_thread_runs() -> None:
    context, marks, stop = multiprocessing.get_context("fork"), marking([(40, 1)] * 20, pauses=20), threading.Event()

    def run_until_told() -> None:
        while not stop.is_set():
            marks.run(2)

    runner = threading.Thread(target=run_until_told)
    runner.start()
    try:
        for _ in range(20):
            child = context.Process(target=_run_in_child, args=(marks,))
            child.start()
            child.join(PATIENCE)
            assert child.exitcode == 0
    finally:
        stop.set()
        runner.join(PATIENCE)


def _run_in_child(marks: Marking) -> None:
    for _ in range(20):
        marks.run(2)


@pytest.mark.parametrize(
    "ending",
    ["pass", "sys.exit(0)", "run()", "threading.Thread(target=run).start()", "pool.shared_pool(2, native()).close()"],
)
def test_interpreter_exits_during_a_run(ending: str) -> None:
    script = f"""
        import sys, threading
        from lite_cpu.runtime import pool
        from lite_cpu.runtime.native import native
        from test_runtime import marking, wait_until
        pool.usable_threads = lambda threads: threads  # two threads even on one processor
        marks = marking([(50, 1), (1, 1)] * 20, pauses=200)
        runs = 0
        def run():
            global runs
            for _ in range(30):
                marks.run(2)
                runs += 1
        def run_forever():
            while True:
                run()
        for _ in range(2):
            threading.Thread(target=run_forever, daemon=True).start()
        wait_until(lambda: runs >= 4)
        {ending}
    """
    done = run_python(script)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_run_continues_without_a_refused_thread() -> None:
    script = """
        import logging, resource
        logging.basicConfig(format="%(message)s")
        from lite_cpu.runtime import pool
        from lite_cpu.runtime.native import native
        from test_runtime import marking
        pool.usable_threads = lambda threads: threads
        marks = marking([(50, 1), (1, 1)])
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (30 << 20), -1))  # a few stacks
        marks.run(500)
        print(pool.shared_pool(500, native()).threads)
    """
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    assert 1 < int(done.stdout) < 500
    assert "the system refused thread" in done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinity")
def test_pool_has_no_more_threads_than_processors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    monkeypatch.setattr(pool, "_pools", {})
    with caplog.at_level(logging.WARNING, logger="lite.cpu.runtime"):
        assert shared_pool(4, native()) is None
        assert shared_pool(4, native()) is None
    assert caplog.messages == ["4 threads requested, 1 used: the process may run on no more processors"]


@pytest.mark.usefixtures("any_threads")
@pytest.mark.parametrize("threads", [1, 3])
def test_times_are_in_order(threads: int) -> None:
    steps = [(50, 1), (1, 1), (1, 1), (9, 2), (0, 1), (1, 1)]
    times = np.zeros(len(steps) + 1, np.int64)
    before = time.monotonic_ns()
    marking(steps).run(threads, times)
    after = time.monotonic_ns()
    assert (times[1:] >= 0).all()
    assert before <= times[0] - times[1:].sum() <= times[0] <= after


def test_chunks_are_even_and_not_too_many() -> None:
    def divided(tasks: int, grain: int) -> list[int]:
        step = Step(1, [], [], tasks, grain)
        return Program([step], 0, 0)._steps[0, [StepField.GRAIN, StepField.CHUNKS, StepField.RUN_LENGTH]].tolist()

    assert divided(100, 30) == [25, 4, 0]
    assert divided(10, 6) == [5, 2, 0]
    assert divided(6, 6) == [6, 1, 1]
    assert divided(0, 6) == [1, 1, 1]
    grain, chunks, _ = divided(1 << 40, 1)
    assert chunks < CHUNK_LIMIT
    assert grain * chunks >= 1 << 40


@pytest.mark.usefixtures("any_threads")
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_every_round_of_a_loop_runs_every_item(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps run again after a step that jumps back; now and then the run returns to Python and is resumed."""
    code, rounds = kernels(), 50
    for seed in range(60):
        monkeypatch.setattr(program, "_SLICE_NANOSECONDS", seed % 3 * 100_000)
        sizes = [(tasks, grain) for tasks, grain in random_steps(seed) if tasks] or [(3, 1)]
        made, items, before = [], 0, 0
        for tasks, grain in sizes:
            pointers = [(1, 8 * items), (1, 8 * (items - before)), (2, 0)]
            made.append(Step(code.address(0, "mark"), pointers, [before, 0], tasks, grain))
            items, before = items + tasks, tasks
        made.append(Step(code.address(0, "count_down"), [(2, 8)], [], jump=-len(sizes)))
        made.append(Step(code.address(0, "mark"), [(1, 8 * items), (1, 8 * items), (2, 0)], [0, 0]))
        looping = Program(made, 0, thread_scratch_bytes=8, owners=[code])
        scratch = aligned_bytes(looping.scratch_bytes(threads))
        marks, state, times = np.zeros(items + 2, np.int64), np.array([0, rounds]), np.zeros(len(made) + 1, np.int64)
        looping.run([a.ctypes.data for a in (scratch, marks, state)], threads, times if seed % 2 else None)
        assert marks.tolist() == [*[rounds] * items, 1, 0], f"seed {seed}"
        assert state.tolist() == [0, 0], f"seed {seed}"


@pytest.mark.parametrize(
    ("tasks", "pointers", "jump"), [(2, [(1, 0)], -1), (1, [], -1), (1, [(1, 0)], -2), (1, [(1, 0)], 2)]
)
def test_invalid_jumps(tasks: int, pointers: list[tuple[int, int]], jump: int) -> None:
    steps = [Step(1, [(1, 0)], []), Step(1, pointers, [], tasks, jump=jump)]
    with pytest.raises(ProgramError, match=f"step 1 jumps by {jump} after {tasks} tasks with {len(pointers)} pointers"):
        Program(steps, 0, 0)
    kernels_and_chunks = ProgramTables.of([step._replace(jump=0) for step in steps])
    kernels_and_chunks.steps[:, StepField.KERNEL] = 0
    kernels_and_chunks.steps[1, StepField.JUMP] = jump
    with pytest.raises(ProgramError, match="inconsistent: .*jumps"):
        kernels_and_chunks.check(1, np.array([8, 8]))


def test_consecutive_steps_of_one_chunk_are_one_phase() -> None:
    steps = marking([(9, 1), (1, 1), (5, 5), (0, 1), (9, 1), (1, 1)]).program._steps
    assert steps[:, StepField.RUN_LENGTH].tolist() == [0, 3, 2, 1, 0, 1]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(0, [], [], label="relu"), r"step 0 \(relu\) has no kernel"),
        (Step(1, [(0, 0)] * (POINTER_LIMIT + 1), []), "step 0 has 65 pointers: expected at most 64"),
        (Step(1, [], [], tasks=-1), "step 0 has -1 tasks"),
        (Step(1, [], [], grain=0), "grains of 0"),
        (Step(1, [(-2, 0)], []), "step 0 points into base -2"),
    ],
)
def test_invalid_step_is_an_error(step: Step, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Program([step], 0, 0)


def test_unsuitable_memory_is_an_error() -> None:
    made = Program([Step(1, [(2, 0)], [])], arena_bytes=100, thread_scratch_bytes=65)
    assert made.scratch_bytes(2) == 128 + 2 * 128
    with pytest.raises(ProgramError, match="2 addresses: the program's steps use 3"):
        made.run([0, 0])
    with pytest.raises(ProgramError, match="0x1020: expected a multiple of 64"):
        made.run([0x1020, 0, 0])
    for times in (np.zeros(1, np.int64), np.zeros(2, np.float64), np.zeros(4, np.int64)[::2]):
        with pytest.raises(ProgramError, match=r"contiguous, writable int64\[2\]"):
            made.run([0, 0, 0], times=times)


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("machine", [X86_64_V2, ARM_V8], ids=lambda machine: machine.name)
def test_runtime_compiles_for_other_systems(machine: object, windows: bool) -> None:
    image = compile_ir(runtime_ir(machine.triple, windows=windows), machine)
    assert set(image.entries) == ({"lite_run"} if windows else {"lite_run", "lite_worker", "lite_stop"})


def fields_of(thread_pool: ThreadPool) -> np.ndarray:
    return thread_pool._memory


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
