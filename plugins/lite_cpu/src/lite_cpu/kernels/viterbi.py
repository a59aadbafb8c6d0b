"""The best path through a linear-chain CRF."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.machine import Machine

__all__ = ["PARAMETERS", "Viterbi"]

F32, I32, I64 = DType.FLOAT32, DType.INT32, DType.INT64

#: Order of the parameters; strides in elements. A row of transitions has ``padded`` elements, a multiple of the lanes.
PARAMETERS = (
    "steps", "tags", "padded",
    "emission_batch", "emission_step", "score_batch", "path_batch", "path_step",
)  # fmt: skip


@dataclass(frozen=True)
class Viterbi(Kernel):
    """Viterbi decoding; a work item is a sequence.

    Vectors are across the tags that a step arrives at. Pointers: emissions, transitions [tags, padded], scores, path
    (int64), and those that are present of start, stop and lengths (int64). Scratch: :meth:`scratch_bytes`.
    """

    start: bool
    stop: bool
    lengths: bool

    @staticmethod
    def scratch_bytes(machine: Machine, steps: int, tags: int) -> int:
        """Return the size of the scores of two steps, and of the origin of each tag of each step."""
        return 4 * Viterbi.padded(machine, tags) * (2 + steps)

    @staticmethod
    def padded(machine: Machine, tags: int) -> int:
        """Return the number of elements of a row in memory."""
        lanes = machine.lanes()
        return -(-tags // lanes) * lanes

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            emissions, transitions, scores = (pointers.tensor(i, F32) for i in range(3))
            path = pointers.tensor(3, I64)
            first = 4
            start = pointers.tensor(first, F32) if self.start else None
            stop = pointers.tensor(first + self.start, F32) if self.stop else None
            best = scratch.cast(F32)
            origins = best[2 * p["padded"]].cast(I32)
            with k.loop(begin, end) as item:
                length = p["steps"]
                if self.lengths:
                    given = pointers.tensor(first + self.start + self.stop, I64)[item].load()
                    length = k.maximum(k.minimum(given, p["steps"]), 0)
                source = emissions[item * p["emission_batch"]]
                target = path[item * p["path_batch"]]
                score = scores[item * p["score_batch"]]
                score.store(0.0)
                with k.if_(length > 0):
                    self._first_step(k, source, start, best, p["tags"])
                    with k.loop(1, length) as step:
                        old, new = best[(step + 1) % 2 * p["padded"]], best[step % 2 * p["padded"]]
                        here = source[step * p["emission_step"]]
                        _step(k, transitions, here, old, new, origins[step * p["padded"]], p["tags"], p["padded"])
                    final, tag = _best(k, best[(length + 1) % 2 * p["padded"]], stop, p["tags"])
                    score.store(final)
                    self._trace(k, origins, target, tag, length, p["padded"], p["path_step"])
                with k.loop(length, p["steps"]) as step:
                    target[step * p["path_step"]].store(k.constant(0, I64))

    def _first_step(self, k: Emitter, source: Pointer, start: Pointer | None, best: Pointer, tags: Val) -> None:
        lanes = k.machine.lanes()

        def element(i: Val, n: int) -> None:
            score = source[i].load(n)
            best[i].store(score if start is None else score + start[i].load(n))

        k.span(tags, lanes, element)

    def _trace(
        self, k: Emitter, origins: Pointer, target: Pointer, last: Val, length: Val, padded: Val, stride: Val
    ) -> None:
        """Store the tags of a path from its last one to the first."""
        tag = k.variable(last)
        with k.loop(0, length) as back:
            step = length - 1 - back
            target[step * stride].store(tag.get())
            with k.if_(step > 0):
                tag.set(origins[step * padded + tag.get()].load().to(I64))


def _step(
    k: Emitter,
    transitions: Pointer,
    here: Pointer,
    old: Pointer,
    new: Pointer,
    origins: Pointer,
    tags: Val,
    padded: Val,
) -> None:
    """Find the best origin of each tag, the lowest of equal ones; lanes beyond the last tag hold anything."""
    lanes = k.machine.lanes()

    def vector(at: Val, valid: Val | None) -> None:
        column = transitions[at]
        best = k.variable(old.load().splat(lanes) + column.load(lanes))
        origin = k.variable(k.constant(0, I32, lanes))
        with k.loop(1, tags) as tag:
            arrival = old[tag].load().splat(lanes) + column[tag * padded].load(lanes)
            better = arrival > best.get()
            best.set(better.select(arrival, best.get()))
            origin.set(better.select(tag.to(I32).splat(lanes), origin.get()))
        new[at].store(best.get() + k.load_first(here[at], valid, lanes))
        origins[at].store(origin.get())

    whole = tags / lanes * lanes
    with k.loop(0, whole, lanes) as at:
        vector(at, None)
    with k.if_(whole < tags):
        vector(whole, tags - whole)


def _best(k: Emitter, scores: Pointer, stop: Pointer | None, tags: Val) -> tuple[Val, Val]:
    """Return the best of the last scores, and its tag."""

    def final(tag: Val | int) -> Val:
        score = scores[tag].load()
        return score if stop is None else score + stop[tag].load()

    best, found = k.variable(final(0)), k.variable(k.constant(0, I64))
    with k.loop(1, tags) as tag:
        score = final(tag)
        better = score > best.get()
        best.set(better.select(score, best.get()))
        found.set(better.select(tag, found.get()))
    return best.get(), found.get()
