"""Generated code that fills the tables of a program: numbers of a recipe, an arena, the division of steps.

The arena is the one that :func:`lite_core.memory.arena.plan_arena` plans, and the division that of
:mod:`lite_cpu.runtime.tables`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from lite_core.memory.arena import GOOD_ENOUGH, GOOD_ENOUGH_LATE, MOST_REPAIRS
from lite_core.memory.host_memory import ALIGNMENT
from lite_cpu.runtime.codegen import Function, Int64, Module
from lite_cpu.runtime.layout import CHUNK_LIMIT, STEP_FIELDS, StepField
from lite_cpu.templates.layout import FillField, LifeField

__all__ = ["emit_fill"]

_LIFE_FIELDS = len(LifeField)


def emit_fill(code: Module, convention: str) -> None:
    """Emit ``lite_fill(layout, numbers, block)``, which returns the bytes of the arena; -1 for a negative size.

    :class:`FillField` describes the layout.
    """
    _emit_breadths(code)
    _emit_sort(code)
    _emit_pack(code)
    _emit_arena(code)
    _emit_divide(code)
    with code.function("lite_fill", 3, result=True, exported=True, convention=convention) as f:
        layout, numbers, block = f.arguments
        sources, targets = layout[FillField.SOURCES], layout[FillField.TARGETS]
        with f.count(layout[FillField.OUTPUTS]) as i:
            block[targets[i]] = numbers[sources[i]]
        size = f.variable(f.call("arena", layout, block))
        _point(f, layout, block)
        with f.if_(f.call("divide", layout, block).compare("==", 0)):
            size.set(-1)
        f.ret(size.get())


def _point(f: Function, layout: Int64, block: Int64) -> None:
    """Emit the offset of each pointer: in its storage, plus where that is."""
    count = layout[FillField.LIFE_COUNT]
    offsets, starts, lives = layout[FillField.WORK], layout[FillField.STARTS], layout[FillField.LIVES]
    within, pointers = block.at(layout[FillField.OFFSETS]), block.at(layout[FillField.POINTERS])
    best = offsets.at(count * 5)
    best[count] = 0  # where pointers that are not in the arena look
    with f.count(layout[FillField.POINTER_COUNT]) as i:
        pointers[i * 2 + 1] = within[i] + starts[i] + best[lives[i]]


def _emit_breadths(code: Module) -> None:
    """Emit ``breadths(layout, sizes, breadths, live)``: the most live bytes of each life; return those of all."""
    with code.function("breadths", 4, result=True) as f:
        layout, sizes, breadths, live = f.arguments
        lifetimes, count = layout[FillField.LIFETIMES], layout[FillField.LIFE_COUNT]
        with f.count(layout[FillField.MOMENTS]) as moment:
            live[moment] = 0
        with f.count(count) as i:
            life = lifetimes.at(i * _LIFE_FIELDS)
            with f.count(life[LifeField.END], life[LifeField.FIRST]) as moment:
                live[moment] = live[moment] + sizes[i]
        most = f.variable(0)
        with f.count(count) as i:
            life, breadth = lifetimes.at(i * _LIFE_FIELDS), f.variable(0)
            with f.count(life[LifeField.END], life[LifeField.FIRST]) as moment:
                breadth.set(_maximum(breadth.get(), live[moment]))
            breadths[i] = breadth.get()
            most.set(_maximum(most.get(), breadth.get()))
        f.ret(most.get())


def _emit_sort(code: Module) -> None:
    """Emit ``sort(layout, sizes, breadths, order)``: largest breadth first, then largest size, then earliest."""
    with code.function("sort", 4) as f:
        layout, sizes, breadths, order = f.arguments
        lifetimes, b = layout[FillField.LIFETIMES], f.builder

        def first_of(number: Int64) -> Int64:
            return lifetimes.at(number * _LIFE_FIELDS)[LifeField.FIRST]

        def is_before(one: Int64, other: Int64) -> Any:
            pairs = [
                (breadths[other], breadths[one]),
                (sizes[other], sizes[one]),
                (first_of(one), first_of(other)),
            ]
            found: Any = ir.Constant(ir.IntType(1), 0)
            for less, more in reversed(pairs):
                found = b.or_(less.compare("<", more), b.and_(less.compare("==", more), found))
            return found

        with f.count(layout[FillField.LIFE_COUNT]) as i:
            place = f.variable(i)
            with f.loop() as loop:
                loop.leave_if(place.get().compare("==", 0))
                previous = order[place.get() - 1]
                loop.leave_if(b.not_(is_before(i, previous)))
                order[place.get()] = previous
                place.set(place.get() - 1)
            order[place.get()] = i


def _emit_pack(code: Module) -> None:
    """Emit ``pack(layout, sizes, order, offsets, ends)``: the lowest offsets in an order; return the arena's size."""
    with code.function("pack", 5, result=True) as f:
        layout, sizes, order, offsets, ends = f.arguments
        count, top = layout[FillField.LIFE_COUNT], f.variable(0)
        with f.count(count) as i:
            ends[i] = 0  # of one that has no place yet, which is in nothing's way
            offsets[i] = 0
        with f.count(count) as place:
            number = order[place]
            life, size, start = layout[FillField.LIFETIMES].at(number * _LIFE_FIELDS), sizes[number], f.variable(0)
            neighbours, moved = layout[FillField.NEIGHBOURS].at(life[LifeField.BEGIN]), f.variable(1)
            with f.loop() as loop:
                loop.leave_if(moved.get().compare("==", 0))
                moved.set(0)
                with f.count(life[LifeField.COUNT]) as j:
                    other = neighbours[j]
                    with (
                        f.if_(ends[other].compare(">", start.get())),
                        f.if_(offsets[other].compare("<", start.get() + size)),
                    ):
                        start.set(ends[other])
                        moved.set(1)
            offsets[number] = start.get()
            ends[number] = start.get() + size
            top.set(_maximum(top.get(), start.get() + size))
        f.ret(top.get())


def _emit_arena(code: Module) -> None:
    """Emit ``arena(layout, block)``: plan the arena, leave the offsets in the work memory, and return its size."""
    with code.function("arena", 2, result=True) as f:
        layout, block = f.arguments
        count = layout[FillField.LIFE_COUNT]
        given, work = block.at(layout[FillField.BYTES]), layout[FillField.WORK]
        sizes, breadths, order, offsets, ends, best = (work.at(count * n) for n in range(6))
        is_negative = f.variable(0)
        with f.count(count) as i:
            sizes[i] = (given[i] + (ALIGNMENT - 1)) & -ALIGNMENT
            is_negative.set(is_negative.get() | (given[i] >> 63))
        bound = f.call("breadths", layout, sizes, breadths, work.at(count * 7))
        f.call("sort", layout, sizes, breadths, order)
        total = f.variable(f.call("pack", layout, sizes, order, offsets, ends))
        least = f.variable(total.get())
        _copy(f, offsets, best, count)
        repairs = f.variable(0)
        with f.loop() as loop:
            loop.leave_if(_is_good(f, layout, least.get(), bound, repairs.get()))
            loop.leave_if(repairs.get().compare("==", MOST_REPAIRS))
            repairs.set(repairs.get() + 1)
            _topmost_first(f, order, ends, total.get(), count)
            total.set(f.call("pack", layout, sizes, order, offsets, ends))
            with f.if_(total.get().compare("<", least.get())):
                least.set(total.get())
                _copy(f, offsets, best, count)
        with f.if_(is_negative.get().compare("!=", 0)):
            least.set(-1)
        f.ret(least.get())


def _is_good(f: Function, layout: Int64, size: Int64, bound: Int64, repairs: Int64) -> Any:
    """Return the condition that a plan of some size needs no further repair."""
    b, double = f.builder, ir.DoubleType()
    is_late = (repairs + 1).compare(">=", layout[FillField.PACKINGS])
    limit = b.select(is_late, ir.Constant(double, GOOD_ENOUGH_LATE), ir.Constant(double, GOOD_ENOUGH))
    return b.fcmp_ordered("<=", b.sitofp(size.value, double), b.fmul(b.sitofp(bound.value, double), limit))


def _topmost_first(f: Function, order: Int64, ends: Int64, total: Int64, count: Int64) -> None:
    """Move the first of the lives that end at the top of the arena to the front of the order."""
    place = f.variable(0)
    with f.loop() as loop:
        loop.leave_if(ends[order[place.get()]].compare("==", total))
        place.set(place.get() + 1)
    topmost = order[place.get()]
    with f.loop() as loop:
        loop.leave_if(place.get().compare("==", 0))
        order[place.get()] = order[place.get() - 1]
        place.set(place.get() - 1)
    order[0] = topmost


def _copy(f: Function, source: Int64, target: Int64, count: Int64) -> None:
    with f.count(count) as i:
        target[i] = source[i]


def _emit_divide(code: Module) -> None:
    """Emit ``divide(layout, block)``: the fields of steps that depend on sizes. It returns 0 for an impossible one."""
    with code.function("divide", 2, result=True) as f:
        layout, block = f.arguments
        count, steps = layout[FillField.STEP_COUNT], block.at(layout[FillField.STEPS])
        tasks, grains = (block.at(layout[field]) for field in (FillField.TASKS, FillField.GRAINS))
        length, is_possible = f.variable(0), f.variable(1)
        with f.count(count) as i:
            number = count - i - 1  # backwards: a run of steps ends at one that is divided
            step, items, grain = steps.at(number * STEP_FIELDS), tasks[number], grains[number]
            with f.if_(((grain - 1) | items).compare(">", (1 << 62) - 1)):  # no grain, or negative items
                is_possible.set(0)
            chunks = _maximum(_ratio(items, _maximum(grain, 1)), 1).minimum(CHUNK_LIMIT - 1)
            even = _maximum(_ratio(items, chunks), 1)
            chunks = _maximum(_ratio(items, even), 1)
            length.set(length.get() + 1)
            with f.if_(chunks.compare("!=", 1)):
                length.set(0)
            step[StepField.TASKS] = items
            step[StepField.GRAIN] = even
            step[StepField.CHUNKS] = chunks
            step[StepField.RUN_LENGTH] = length.get()
        f.ret(is_possible.get())


def _ratio(items: Int64, grain: Int64) -> Int64:
    """Return the quotient, rounded up."""
    return (items + grain - 1) // grain


def _maximum(one: Int64, other: Any) -> Int64:
    f = one.f
    return Int64(f, f.builder.select(one.compare(">", other), one.value, f.int64(other).value))
