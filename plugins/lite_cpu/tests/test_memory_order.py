"""Memory orders of the runtime: every execution that the C++20 model allows, every order weakened, the code for ARM.

x86 keeps an order that other processors do not, so running the runtime there proves little. These tests run its
generated code in a model instead; docs/memory-order.md explains both.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from ir_threads import Code, atomic_instructions, orders_of
from thread_model import Scenario, Violation, explore

from lite_cpu.machine import ARM_V8
from lite_cpu.machine_code import objects
from lite_cpu.runtime import work_stealing
from lite_cpu.runtime.native_code import runtime_ir, runtime_module

#: No work: the worker goes to sleep and is woken, by a run and by the stop of the pool, at any moments.
SLEEP = Scenario(steps=())
#: Two steps of two chunks, each of which either thread may take.
STEPS = Scenario(steps=(2, 2), times=True)
#: Two runs of one step: a worker that is late finds the tickets of the first run again.
RUNS = Scenario(steps=(2,), runs=2, times=True)
#: Two threads start a run of the same pool: one leads, the other one may run alone.
LEADERS = Scenario(steps=(1,), leaders=2, workers=0)

PAGE = Path(__file__).parents[3] / "docs/memory-order.md"


@pytest.fixture(autouse=True)
def short_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads spin once before they read the clock: more often would only repeat the same state."""
    monkeypatch.setattr(work_stealing, "_PAUSES_BETWEEN_CLOCK_READINGS", 1)


def runtime() -> Any:
    return runtime_module(ARM_V8.triple).ir


@pytest.mark.parametrize(
    "scenario", [SLEEP, Scenario(steps=(2,), times=True), LEADERS], ids=["sleep", "one step", "leaders"]
)
def test_every_execution_keeps_the_promises(scenario: Scenario) -> None:
    explore(Code(runtime()), scenario)


@pytest.mark.full("cpu")
@pytest.mark.parametrize(
    "scenario",
    [
        STEPS,
        RUNS,
        Scenario(steps=(2, 1, 1, 2), times=True),
        Scenario(steps=(1,), leaders=2, runs=2, workers=0),
        Scenario(steps=(1,), leaders=2, times=True),
        Scenario(steps=(), runs=2),
        Scenario(steps=(), affinity=True),
        Scenario(steps=(), stopper=True),
        Scenario(steps=(2,)),
    ],
    ids=str,
)
def test_every_execution_of_longer_programs_keeps_the_promises(scenario: Scenario) -> None:
    explore(Code(runtime()), scenario)


#: Of each function, the scenario whose executions show that an order in it is too weak.
SHOWN_BY = {
    "publish": STEPS,
    "work": RUNS,
    "sleep": SLEEP,
    "wake": SLEEP,
    "lead": SLEEP,
    "lite_stop": SLEEP,
    "lite_run": LEADERS,
}


def weaker_orders(instruction: Any) -> list[str]:
    """Return the orders one step below that of an instruction; none is below "monotonic"."""
    kind = instruction.opname
    if instruction.ordering == "seq_cst":
        return [{"load atomic": "acquire", "store atomic": "release"}.get(kind, "acq_rel")]
    return {"acq_rel": ["acquire", "release"], "monotonic": []}.get(instruction.ordering, ["monotonic"])


@pytest.mark.full("cpu")
def test_each_weaker_order_breaks_a_promise() -> None:
    module, unnoticed, weakened = runtime(), [], 0
    for function, instruction in atomic_instructions(module):
        order = instruction.ordering
        for weaker in weaker_orders(instruction):
            instruction.ordering = weaker
            weakened += 1
            try:
                explore(Code(module), SHOWN_BY[function])
            except Violation:
                continue
            finally:
                instruction.ordering = order
            unnoticed.append(f"{function}: {instruction.opname} {order} -> {weaker}")
    assert unnoticed == []
    assert weakened >= 14


def test_weaker_orders_are_noticed() -> None:
    """The model finds a sleeper that is missed, and data that is not visible: an example of each kind."""
    for function, order, weaker in (("wake", "seq_cst", "acquire"), ("publish", "release", "monotonic")):
        module = runtime()
        for name, instruction in atomic_instructions(module):
            if (name, instruction.ordering) == (function, order):
                instruction.ordering = weaker
        with pytest.raises(Violation, match=r"thread \d .*\n    thread \d: "):
            explore(Code(module), SHOWN_BY[function])


#: Instructions of ARMv8.0 for the accesses of each function: the second half of each pair is the store of the loop.
INSTRUCTIONS = {
    "publish": {"stlr"},
    "sleep": {"ldaxr", "stlxr", "ldxr", "stxr", "ldar"},
    "wake": {"ldar"},
    "work": {"ldar", "ldaxr", "stxr", "stlxr"},
    "lead": {"stlr"},
    "lite_stop": {"stlr"},
    "lite_run": {"ldaxr", "stxr", "stlr"},
}
#: The same on ARMv8.3: single instructions for exchanges (LSE), and loads for acquire that later stores may overtake.
INSTRUCTIONS_OF_V8_3 = {
    "publish": {"stlr"},
    "sleep": {"ldaddal", "ldadd", "ldar"},
    "wake": {"ldar"},
    "work": {"ldapr", "casa", "ldaddal"},
    "lead": {"stlr"},
    "lite_stop": {"stlr"},
    "lite_run": {"casa", "stlr"},
}
_ORDERED = re.compile(r"\t((?:ld|st)(?:a|l)\w*|ldxr|stxr|cas\w*|swp\w*|ldadd\w*|stadd\w*|dmb)\t")


@pytest.mark.parametrize(
    ("features", "expected"),
    [((), INSTRUCTIONS), (("+lse", "+rcpc"), INSTRUCTIONS_OF_V8_3)],
    ids=["v8.0", "v8.3"],
)
def test_instructions_for_arm(
    features: tuple[str, ...], expected: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM orders accesses by the instructions that docs/memory-order.md names, without a single barrier."""
    texts, emit = [], objects.optimize_and_emit

    def with_text(pipeline: Any, module: Any, passes: Any, target_machine: Any, **options: Any) -> bytes:
        image = emit(pipeline, module, passes, target_machine, **options)
        texts.append(target_machine.emit_assembly(module))
        return image

    monkeypatch.setattr(objects, "optimize_and_emit", with_text)
    machine = dataclasses.replace(ARM_V8, features=ARM_V8.features + features)
    objects.compile_ir(runtime_ir(machine.triple), machine)
    functions = re.findall(r"^(\w+):\n(.*?)^\.Lfunc_end", texts[0], re.DOTALL | re.MULTILINE)
    found = {name: set(_ORDERED.findall(body)) for name, body in functions}
    assert {name: used for name, used in found.items() if used} == expected


def test_orders_of_the_page() -> None:
    """docs/memory-order.md lists every atomic access of the runtime with its order."""
    _, _, section = PAGE.read_text().partition("\n## Every atomic access\n")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w-]+) \| ([\w ]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    found = [(function, access_of(each), orders_of(each)) for function, each in atomic_instructions(runtime())]
    assert sorted(rows) == sorted(found)


def access_of(instruction: Any) -> str:
    names = {"load atomic": "load", "store atomic": "store", "cmpxchg": "compare-and-swap"}
    return names.get(instruction.opname) or str(instruction.operation)
