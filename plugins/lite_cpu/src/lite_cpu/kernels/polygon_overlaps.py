"""Overlaps of two polygons of any shape, as :mod:`lite_core.ops.lite_locality` defines them."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val, Variable

__all__ = ["overlap_bytes", "polygon_overlap"]

F32, F64, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT64

#: Numbers of an edge that is not vertical: its left end, then its right one.
_EDGE = 4


def _most_stops(points: int) -> int:
    """Return how many vertices and crossings two polygons have at most."""
    edges = 2 * points
    return edges + edges * (edges - 1) // 2


def overlap_bytes(points: int) -> int:
    """Return the memory that :func:`polygon_overlap` needs: the result, edges, stops, and the heights of two cuts."""
    return 8 * (1 + 2 * points * _EDGE + _most_stops(points) + 2 * points)


def polygon_overlap(k: Emitter, first: Pointer, second: Pointer, points: int, memory: Pointer) -> Val:
    """Emit the intersection over union of two polygons, in float64; 0 if an area is 0.

    A point is inside by the even-odd rule. Between two neighbours of the sorted positions of vertices and crossings no
    edges cross, so that an area there is the length of a cut in the middle times their distance.

    Args:
        k: the emitter.
        first: the points of a polygon (x, y), float32.
        second: those of the other one.
        points: the number of points of each.
        memory: :func:`overlap_bytes` bytes.
    """
    numbers = memory.cast(F64)

    def body(first: Pointer, second: Pointer, numbers: Pointer) -> None:
        numbers.store(0.0)
        with k.if_(_boxes_meet(k, first, second, points)):
            _Sweep(k, points, numbers).run((first, second))

    k.function("polygon_overlap", body, first, second, numbers)
    return numbers.load()


def _boxes_meet(k: Emitter, first: Pointer, second: Pointer, points: int) -> Val:
    meet = k.constant(1, DType.BOOL)
    for axis in range(2):
        bounds = []
        for polygon in (first, second):
            low = high = polygon[axis].load()
            for point in range(1, points):
                number = polygon[point * 2 + axis].load()
                low, high = k.minimum(low, number), k.maximum(high, number)
            bounds.append((low, high))
        (low, high), (other_low, other_high) = bounds
        meet = meet & (high >= other_low) & (other_high >= low)
    return meet


class _Sweep:
    """The walk over the stops of two polygons; the first number of the memory receives the overlap."""

    def __init__(self, k: Emitter, points: int, numbers: Pointer) -> None:
        self.k, self.points, self.result = k, points, numbers
        self.edges = numbers[1]
        self.stops = self.edges[2 * points * _EDGE]
        self.heights = [self.stops[_most_stops(points) + points * polygon] for polygon in range(2)]

    def run(self, polygons: tuple[Pointer, Pointer]) -> None:
        k = self.k
        edges, stops = k.variable(k.index(0)), k.variable(k.index(0))
        limits = [k.index(0)]
        for polygon in polygons:
            self._add_edges(polygon, edges, stops)
            limits.append(edges.get())
        with k.loop(0, edges.get()) as i, k.loop(0, i) as j:
            self._add_crossing(self.edges[i * _EDGE], self.edges[j * _EDGE], stops)
        _sort(k, self.stops, stops.get())
        areas = [k.variable(k.constant(0.0, F64)) for _ in polygons]
        common = k.variable(k.constant(0.0, F64))
        with k.loop(1, stops.get()) as stop:
            low, high = self.stops[stop - 1].load(), self.stops[stop].load()
            counts = [
                self._cut(self.edges, limits[n], limits[n + 1], (low + high) / 2.0, heights)
                for n, heights in enumerate(self.heights)
            ]
            for area, heights, count in zip(areas, self.heights, counts):
                with self._spans(heights, count) as (a, b):
                    area.set(area.get() + (high - low) * (b - a))
            with self._spans(self.heights[0], counts[0]) as (a, b), self._spans(self.heights[1], counts[1]) as (c, d):
                length = k.minimum(b, d) - k.maximum(a, c)
                common.set(common.get() + (high - low) * k.maximum(length, 0.0))
        one, other = (area.get() for area in areas)
        with k.if_((one > 0.0) & (other > 0.0) & (common.get() > 0.0)):
            self.result.store(common.get() / (one + other - common.get()))

    def _add_edges(self, polygon: Pointer, edges: Variable, stops: Variable) -> None:
        """Append the edges that are not vertical, left end first, and the positions of all vertices."""
        k = self.k
        ends = [[polygon[n * 2 + axis].load().to(F64) for axis in range(2)] for n in range(self.points)]
        for number, (x, y) in enumerate(ends):
            other_x, other_y = ends[(number + 1) % self.points]
            self.stops[stops.get()].store(x)
            stops.set(stops.get() + 1)
            with k.if_((x < other_x) | (other_x < x)):
                is_left = x < other_x
                edge = self.edges[edges.get() * _EDGE]
                for place, (a, b) in enumerate(((x, other_x), (y, other_y))):
                    edge[place].store(is_left.select(a, b))
                    edge[place + 2].store(is_left.select(b, a))
                edges.set(edges.get() + 1)

    def _add_crossing(self, edge: Pointer, other: Pointer, stops: Variable) -> None:
        """Append the position where two edges cross, if they do."""
        k = self.k
        low, high = k.maximum(edge.load(), other.load()), k.minimum(edge[2].load(), other[2].load())
        with k.if_(low < high):
            before, after = (_height(edge, x) - _height(other, x) for x in (low, high))
            with k.if_(before * after < 0.0):
                self.stops[stops.get()].store(low + (high - low) * before / (before - after))
                stops.set(stops.get() + 1)

    def _cut(self, edges: Pointer, begin: Val, end: Val, x: Val, heights: Pointer) -> Val:
        """Store the sorted heights at which the edges of a polygon meet the vertical line at ``x``; return how many."""
        k = self.k
        count = k.variable(k.index(0))
        with k.loop(begin, end) as number:
            edge = edges[number * _EDGE]
            with k.if_((edge.load() < x) & (x < edge[2].load())):
                heights[count.get()].store(_height(edge, x))
                count.set(count.get() + 1)
        _sort(k, heights, count.get())
        return count.get()

    def _spans(self, heights: Pointer, count: Val) -> _Spans:
        return _Spans(self.k, heights, count)


class _Spans:
    """A loop over the pairs of neighbouring heights that are inside of a polygon."""

    def __init__(self, k: Emitter, heights: Pointer, count: Val) -> None:
        self._heights, self._loop = heights, k.loop(0, count / 2)

    def __enter__(self) -> tuple[Val, Val]:
        pair = self._heights[self._loop.__enter__() * 2]
        return pair.load(), pair[1].load()

    def __exit__(self, *error: object) -> None:
        self._loop.__exit__(None, None, None)


def _height(edge: Pointer, x: Val) -> Val:
    """Return the height of an edge at a position."""
    x0, y0, x1, y1 = (edge[n].load() for n in range(_EDGE))
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def _sort(k: Emitter, numbers: Pointer, count: Val) -> None:
    """Emit a call that sorts a few float64 numbers."""
    k.function("sort_numbers", _insert, numbers, count)


def _insert(numbers: Pointer, count: Val) -> None:
    k = count.k
    with k.loop(1, count) as number:
        inserted, at = numbers[number].load(), k.variable(number)
        goes_down = k.variable(k.constant(1, DType.BOOL))
        with k.while_(lambda: goes_down.get()):
            before = numbers[at.get() - 1].load()
            goes_down.set(before > inserted)
            with k.if_(goes_down.get()):
                numbers[at.get()].store(before)
                at.set(at.get() - 1)
                goes_down.set(at.get() > 0)
        numbers[at.get()].store(inserted)
