"""Dynamic batching: which models can be batched, in which sizes, and whether that changes answers.

Requests whose inputs differ at most in dimension 0 can share a run, if the model computes each row for itself. Whether
it does, and whether a row of a batch has exactly the bits of the same row alone, is not a matter of belief: a batch of
random rows is compared with runs of its rows, for each set of shapes and each size. The same runs tell what a row
costs in each size. A batch is formed only if that makes rows cheaper.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from lite_core import DType, Session, TensorType
from lite_core.errors import LiteError
from lite_core.ir import SymbolicDim
from lite_serve.protocol.messages import Array

__all__ = ["BatchShapes", "Batching", "Key", "joined", "parts_of", "random_rows", "reason_against_batching"]

logger = logging.getLogger("lite.serve.models")

#: The shapes of a model's inputs without dimension 0, in order.
Key = tuple[tuple[int, ...], ...]
#: Seconds that a run costs beside the model: queueing, waking a thread, dividing the answer.
_SECONDS_PER_RUN = 5e-5
#: A batch must cost less than this share of the same rows in single runs, or its requests wait for each other in vain.
_WORTHWHILE = 0.9
#: Seconds after which a check tries no further sizes.
_CHECK_SECONDS = 5.0
#: How often requests of the same shapes wait together before a check of these shapes pays.
_OPPORTUNITIES = 16
#: Sets of shapes that are remembered, and that are checked when a model is loaded.
_MOST_KEYS, _MOST_KEYS_AT_LOAD = 256, 4
#: The largest difference between rows of a batch and rows alone, as a share of the output's range, that rounding can
#: explain; rows that depend on each other differ by more. Integers may differ where rounding decides, as in ArgMax.
_ROUNDING, _ROUNDING_OF_HALF, _UNEQUAL_INTEGERS = 1e-2, 5e-2, 0.01


@dataclass(slots=True)
class BatchShapes:
    """Facts about batches of some shapes.

    Attributes:
        seconds: for each size that was checked, and for 1, the seconds of a run.
        exact: the sizes whose rows are bit-equal to rows alone.
        close: the sizes whose rows are equal to rows alone but for rounding.
        opportunities: how often requests of these shapes waited together.
        is_checked: True as soon as a check begins.
        problem: why a check could not be made; empty if it was made.
    """

    seconds: dict[int, float] = field(default_factory=dict)
    exact: set[int] = field(default_factory=set)
    close: set[int] = field(default_factory=set)
    opportunities: int = 0
    is_checked: bool = False
    problem: str = ""


def reason_against_batching(inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType]) -> str:
    """Return why requests cannot share a run; empty if one symbol is dimension 0 of all inputs and outputs."""
    symbol: SymbolicDim | None = None
    for kind, types in (("input", inputs), ("output", outputs)):
        for name, type_ in types.items():
            subject = f"dimension 0 of {kind} {name!r}"
            if not type_.shape:
                return f"{subject} {'does not exist' if type_.shape == () else 'is not known before a run'}"
            first = type_.shape[0]
            if not isinstance(first, SymbolicDim):
                return f"{subject} is always {first}; requests can share a run if it is free"
            if symbol is None:
                symbol = first
            if first.name is None or first != symbol:
                return f"{subject} is {first}, that of the first input is {symbol}"
            if first.name in type_.with_shape(type_.shape[1:]).symbols:
                return f"other dimensions of {kind} {name!r} depend on its dimension 0"
    return "" if inputs and outputs else "the model has no inputs"


class Batching:
    """The batches of one session.

    Args:
        session: the session.
        mode: ``"exact"``, ``"fast"`` or ``"off"``.
        largest: rows of a batch at most.
    """

    def __init__(self, session: Session, mode: str, largest: int) -> None:
        self._session = session
        self._mode = mode
        self._largest = largest
        self._keys: OrderedDict[Key, BatchShapes] = OrderedDict()
        self._is_known_close = False
        self.reason = reason_against_batching(session.inputs, session.outputs)
        self._has_rows = not self.reason
        if self._has_rows and (mode == "off" or largest == 1):
            self.reason = "batching is off"
        prepared = {} if self.reason else _prepared_sizes(session)
        sizes = {size for found in prepared.values() for size in found if 1 < size <= largest}
        if prepared and not sizes and mode == "exact":
            self.reason = (
                "the file is prepared for no other sizes of dimension 0; `lite convert` with an --input-shape for each "
                "size prepares it, batching 'fast' compiles them when the model is loaded"
            )
        self.is_possible = not self.reason
        #: The sizes of batches, without 1: those that the file is prepared for, else powers of two.
        self.sizes = tuple(sorted(sizes)) or tuple(2**n for n in range(1, largest.bit_length()))
        if self.is_possible:
            static = tuple(type_.shape[1:] for type_ in session.inputs.values() if type_.shape)
            is_static = all(isinstance(dim, int) for shape in static for dim in shape)
            keys = [static] if is_static else list(prepared)[:_MOST_KEYS_AT_LOAD]
            for key in keys:
                self.check(key)  # type: ignore[arg-type]

    # **** questions of the queue ****

    def key_of(self, inputs: Mapping[str, Array]) -> tuple[Key | None, int]:
        """Return the key of a request and its rows; the key is None if the request cannot share a run."""
        if not self._has_rows:
            return None, 1
        shapes = [array.shape for array in inputs.values()]
        rows = shapes[0][0]
        if not self.is_possible or not 1 <= rows < self._largest:
            return None, rows
        return tuple([shape[1:] for shape in shapes]), rows

    def choose(self, key: Key, rows: Sequence[int]) -> int:
        """Return how many of some waiting requests should share a run, at least 1: those whose rows are cheapest.

        Args:
            key: the shapes of these requests.
            rows: the rows of each.
        """
        if len(rows) < 2:
            return 1
        shapes = self._shapes(key)
        shapes.opportunities += 1
        usable = self._usable(shapes)
        best, count = self._cost(shapes, rows[0], rows[0]) * _WORTHWHILE, 1
        for number, total in enumerate(accumulate(rows), 1):
            size = self.size_for(key, total)
            if number == 1 or size is None or not self._may_share(shapes, usable, rows[:number]):
                continue
            cost = self._cost(shapes, size, total)
            if cost <= best:
                best, count = cost, number
        return count

    def size_for(self, key: Key, rows: int) -> int | None:
        """Return the size in which so many rows run as one batch, or None if there is none."""
        usable = self._usable(self._shapes(key))
        return min((size for size in usable if size >= rows), default=None)

    def needs_check(self, key: Key | None) -> bool:
        """Return True if batches of these shapes are wanted, and should be checked now."""
        if key is None or (shapes := self._keys.get(key)) is None or shapes.is_checked:
            return False
        is_urgent = self._mode == "fast" and not self._is_known_close
        return shapes.opportunities >= (1 if is_urgent else _OPPORTUNITIES)

    # **** the check ****

    def check(self, key: Key, example: Mapping[str, Array] | None = None) -> None:
        """Compare batches with runs of their rows, and measure both. Takes several runs.

        Args:
            key: the shapes.
            example: inputs of a request of these shapes: elements that are no floats are taken from it.
        """
        shapes = self._shapes(key)
        if shapes.is_checked:
            return
        shapes.is_checked = True
        began = time.monotonic()
        try:
            self._compare(key, shapes, example, began + _CHECK_SECONDS)
        except LiteError as error:  # such as an index that is not valid
            shapes.problem = str(error)
        except Exception as error:
            logger.exception("checking batches of model %r failed", self._session.name)
            shapes.problem = f"it failed with {type(error).__name__}"
        self._is_known_close = self._is_known_close or bool(shapes.close)
        logger.debug("batches of %s: %s, checked in %.2f s", key, shapes, time.monotonic() - began)

    def _compare(self, key: Key, shapes: BatchShapes, example: Mapping[str, Array] | None, end: float) -> None:
        rows = random_rows(self._session.inputs, key, example, max(self.sizes))
        alone: list[dict[str, Array]] = []
        self._session.run({name: array[:1] for name, array in rows.items()})  # makes the plan
        for size in self.sizes:
            if time.monotonic() >= end:
                return
            while len(alone) < size:
                row = {name: array[len(alone) : len(alone) + 1] for name, array in rows.items()}
                outputs, seconds = _timed(self._session, row)
                alone.append(outputs)
                shapes.seconds[1] = min(seconds, shapes.seconds.get(1, seconds))
            batch = {name: array[:size] for name, array in rows.items()}
            together, _ = _timed(self._session, batch)
            is_exact, is_close = _agreement(together, alone[:size])
            if is_close:
                shapes.close.add(size)
            if is_exact:
                shapes.exact.add(size)
            if not (is_exact if self._mode == "exact" else is_close):
                return  # larger ones differ, too
            shapes.seconds[size] = min(_timed(self._session, batch)[1] for _ in range(3))

    # **** reports ****

    @property
    def properties(self) -> dict[str, str]:
        """Return facts for the model's metadata."""
        facts = {"batching": self._mode if self.is_possible else "off", "batching_note": self.note}
        if self.is_possible:
            checked = list(self._keys.values())
            usable = sorted({size for shapes in checked for size in self._usable(shapes)})
            facts["batch_sizes"] = ", ".join(map(str, [1, *usable]))
            is_exact = self._mode == "exact" or all(self._usable(shapes) <= shapes.exact for shapes in checked)
            facts["batch_answers"] = "bit-equal" if is_exact else "not bit-equal"
            if measured := [shapes.seconds for shapes in checked if len(shapes.seconds) > 1]:
                seconds = measured[0]
                shares = (f"{100 * seconds[s] / s / seconds[1]:.0f}% in {s}" for s in sorted(seconds) if s > 1)
                facts["batch_row_time"] = ", ".join(shares)
        return facts

    @property
    def note(self) -> str:
        """Return one line about whether and how requests are batched, and why not."""
        if not self.is_possible:
            return "requests are not batched: " + self.reason
        checked = {key: shapes for key, shapes in self._keys.items() if shapes.is_checked}
        if not checked:
            return (
                "requests are not batched yet: other dimensions than 0 are free, and batches are checked when requests "
                "of the same shapes wait together"
            )
        key, shapes = next(iter(checked.items()))
        about = "" if len(checked) == 1 and not self._has_free_dims else f" for shapes such as {_text(key)}"
        usable = sorted(self._usable(shapes))
        if shapes.problem:
            return f"requests are not batched{about}: a batch could not be checked: {shapes.problem}"
        if not usable:
            if not shapes.close:
                return f"requests are not batched{about}: rows of a batch depend on each other"
            return (
                f"requests are not batched{about}: the last bits of an answer would depend on the batch; "
                "batching 'fast' allows that"
            )
        are_equal = "bit-equal" if set(usable) <= shapes.exact else "not bit-equal"
        return f"requests are batched{about} where that saves time; answers are {are_equal} to those of single requests"

    @property
    def _has_free_dims(self) -> bool:
        types = self._session.inputs.values()
        return any(isinstance(dim, SymbolicDim) for type_ in types for dim in (type_.shape or ())[1:])

    def _usable(self, shapes: BatchShapes) -> set[int]:
        """Return the sizes that the mode allows for some shapes."""
        if self._mode == "exact":
            return shapes.exact
        if shapes.is_checked or not self._is_known_close:
            return shapes.close
        return set(self.sizes)  # rows of other shapes do not depend on each other, so neither do these

    def _may_share(self, shapes: BatchShapes, usable: set[int], rows: Sequence[int]) -> bool:
        """Return True if requests of so many rows have the same answers alone as their rows have alone."""
        return self._mode == "fast" or all(count == 1 or count in usable for count in rows)

    def _cost(self, shapes: BatchShapes, size: int, rows: int) -> float:
        """Return the seconds per row of a run; a size that was not measured costs as much as single rows."""
        single = shapes.seconds.get(1, 1e-3)
        return (shapes.seconds.get(size, single * size) + _SECONDS_PER_RUN) / rows

    def _shapes(self, key: Key) -> BatchShapes:
        """Return what is known about some shapes. Called by several threads: each change is one step."""
        found = self._keys.get(key)
        if found is None:
            found = self._keys.setdefault(key, BatchShapes())
            while len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        return found


def joined(requests: Sequence[Mapping[str, Array]], size: int) -> dict[str, Array]:
    """Return the rows of some requests as one batch, filled up to a size with copies of the first row."""
    batch = {}
    for name, first in requests[0].items():
        arrays = [request[name] for request in requests]
        missing = size - sum(len(array) for array in arrays)
        batch[name] = np.concatenate(arrays + [first[:1]] * missing)
    return batch


def parts_of(outputs: Mapping[str, Array], rows: Sequence[int]) -> list[dict[str, Array]]:
    """Return for each request its rows of the outputs of a batch; arrays are views."""
    ends = list(accumulate(rows))
    return [{name: array[end - count : end] for name, array in outputs.items()} for end, count in zip(ends, rows)]


def random_rows(
    inputs: Mapping[str, TensorType], key: Key, example: Mapping[str, Array] | None, count: int
) -> dict[str, Array]:
    """Return a batch of different rows, always the same ones.

    Floats are normal random numbers. Other elements are those of an example, turned by one more place in each row, so
    that they stay valid; without an example they are 0 and 1, which are valid as nearly every index.
    """
    random = np.random.default_rng(0)
    rows: dict[str, Array] = {}
    for (name, type_), shape in zip(inputs.items(), key):
        dtype = type_.dtype.numpy
        if type_.dtype.is_floating:
            array = random.standard_normal((count, *shape)).astype(dtype)
        elif example is not None:
            array = np.stack([np.roll(example[name][:1].reshape(-1), n).reshape(shape) for n in range(count)])
        else:
            array = random.integers(0, 2, (count, *shape))
            array = array.astype(str).astype(object) if type_.dtype is DType.STRING else array.astype(dtype)
        rows[name] = np.ascontiguousarray(array)
    return rows


def _timed(session: Session, inputs: dict[str, Array]) -> tuple[dict[str, Array], float]:
    start = time.perf_counter()
    outputs = session.run(inputs)
    return outputs, time.perf_counter() - start


def _agreement(together: Mapping[str, Array], alone: Sequence[Mapping[str, Array]]) -> tuple[bool, bool]:
    """Return whether a batch is bit-equal to its rows alone, and whether it is but for rounding."""
    is_exact = is_close = True
    for name, batch in together.items():
        if any(len(outputs[name]) != 1 for outputs in alone) or len(batch) != len(alone):
            return False, False
        rows = np.concatenate([outputs[name] for outputs in alone])
        if rows.shape != batch.shape:
            return False, False
        if batch.dtype.hasobject:
            is_equal = bool(np.array_equal(batch, rows))
            is_exact, is_close = is_exact and is_equal, is_close and is_equal
            continue
        if batch.tobytes() == rows.tobytes():
            continue
        is_exact = False
        is_close = is_close and _is_close(batch, rows)
    return is_exact, is_close


def _is_close(batch: Array, rows: Array) -> bool:
    dtype = DType.of(batch.dtype)
    if not dtype.is_floating:
        return bool(np.mean(batch != rows) <= _UNEQUAL_INTEGERS)
    a, b = batch.astype(np.float64), rows.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    a, b = a[finite], b[finite]
    spread = float(b.max() - b.min()) if b.size else 0.0
    limit = (_ROUNDING_OF_HALF if dtype.is_half else _ROUNDING) * max(spread, 1e-30)
    return not a.size or float(np.abs(a - b).max()) <= limit


def _prepared_sizes(session: Session) -> dict[Key, set[int]]:
    """Return the sizes of dimension 0 that the model's file is prepared for, by the other dimensions."""
    found: dict[Key, set[int]] = {}
    for record in session.file.targets if session.file else ():
        for plan in record.plans:
            shapes = [tuple(plan.shapes.get(name, ())) for name in session.inputs]
            sizes = {shape[0] for shape in shapes if shape}
            if all(shapes) and len(sizes) == 1:
                found.setdefault(tuple(shape[1:] for shape in shapes), set()).update(sizes)
    return found


def _text(key: Key) -> str:
    return ", ".join("N" + "".join(f"x{dim}" for dim in shape) for shape in key)
