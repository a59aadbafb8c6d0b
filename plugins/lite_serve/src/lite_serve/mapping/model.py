"""The model of a job: a session that all parts in a process share, and batches of one size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lite_core.errors import InputError, LiteError
from lite_core.forking import new_lock
from lite_core.ir import Shape, SymbolicDim, TensorType
from lite_core.ops.infer import specialize
from lite_core.session import OpenedModel, Session, load
from lite_serve.mapping.job import Job, opened_with_digest
from lite_serve.mapping.rows import Array

__all__ = ["JobModel", "batch_of"]

#: Bytes of the inputs of a run, and its rows at most, if neither the user nor the model says how many rows. Networks
#: for pictures are fastest with one or few: more values do not stay in the caches.
_BATCH_BYTES, _MOST_ROWS = 2**17, 1024
#: Sizes that the model leaves open are taken for these, for pictures and for everything else.
_PICTURE, _OTHER = 224, 16


class JobModel:
    """A session for a job, with the functions before and after it. May be used by many threads at once.

    Args:
        job: the job.
        opened: the model, if it has been opened already, and was compared with the job.

    Raises:
        InputError: the model here is not the one that the job was made for, or it cannot be run on batches of rows.
        LiteError: it cannot be loaded.
    """

    def __init__(self, job: Job, opened: OpenedModel | None = None) -> None:
        options = json.loads(job.reader_options)
        if opened is None:
            opened, digest = opened_with_digest(job.model, options)
            if digest != job.model_digest:
                raise InputError(
                    f"the model {job.model!r} here differs from the one that the run was started with; every machine "
                    "needs the same file, and it may not change during a run"
                )
        is_file = opened.file is not None
        self.session: Session = load(job.model if is_file else opened.graph, **job.session_options())
        self.batch = batch_of(job, self.session)
        self.outputs = _wanted_outputs(job, self.session)
        self._job = job
        self._checked: set[tuple[tuple[int, ...], ...]] = set()
        self._lock = new_lock()

    @cached_property
    def before(self) -> Callable[..., Any] | None:
        """The function that prepares rows."""
        return None if self._job.before is None else self._job.before.load(self._job.folder, "--before")

    @cached_property
    def after(self) -> Callable[..., Any] | None:
        """The function that turns outputs into columns."""
        return None if self._job.after is None else self._job.after.load(self._job.folder, "--after")

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of inputs that the user has given, or a .lite file is prepared for."""
        return {**_prepared(self.session), **dict(self._job.shapes)}

    def open_outputs(self) -> dict[str, bool]:
        """Return for each column of outputs whether the model leaves a size of its rows open."""
        types = self.session.outputs
        return {
            column: (shape := types[name].shape) is None or not all(isinstance(dim, int) for dim in shape[1:])
            for name, column in self.outputs.items()
        }

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model on at most :attr:`batch` rows, and return the outputs of these rows by their columns.

        Fewer rows are filled up to a batch with copies of the last one, so that one plan serves all batches.

        Raises:
            InputError: an output does not have a row for each row of the input.
            LiteError: the model fails.
        """
        rows = len(next(iter(arrays.values())))
        missing = self.batch - rows
        if missing:
            arrays = {n: np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) for n, a in arrays.items()}
        else:
            arrays = {n: np.ascontiguousarray(array) for n, array in arrays.items()}
        self._check_rows(arrays)
        found = self.session.run(arrays)
        results = {}
        for name, column in self.outputs.items():
            array = found[name]
            if array.ndim == 0 or len(array) != self.batch:
                raise InputError(_not_rows(name, array.shape, self.batch))
            results[column] = array[:rows]
        return results

    def _check_rows(self, arrays: Mapping[str, Array]) -> None:
        """Check by shape inference that the outputs grow with the batch: a fixed size may equal the batch by chance."""
        key = tuple(array.shape for array in arrays.values())
        with self._lock:
            if key in self._checked:
                return
            self._checked.add(key)
        dims = [type.shape for type in self.session.inputs.values()]
        if any(shape is None or isinstance(shape[0], int) for shape in dims):
            return
        more = self.batch + 1
        shapes = {name: (more, *arrays[name].shape[1:]) for name in self.session.inputs}
        try:
            inference = specialize(self.session.graph, shapes)
        except LiteError:  # the run says more
            return
        for value in self.session.graph.outputs:
            if value.name not in self.outputs:
                continue
            shape = inference.type_of(value).shape
            if shape is not None and (len(shape) == 0 or (isinstance(shape[0], int) and shape[0] != more)):
                raise InputError(_not_rows(value.name, shape, more))


def batch_of(job: Job, session: Session) -> int:
    """Return the rows of each run.

    Raises:
        InputError: an input has no dimension for rows, or the model's batch is not the one that the user wants.
    """
    wanted = job.batch or next((shape[0] for _, shape in job.shapes if shape), None)
    fixed: dict[str, int] = {}
    for name, type_ in session.inputs.items():
        if type_.shape == ():
            raise InputError(_no_rows(name, type_))
        if type_.shape is not None and isinstance(type_.shape[0], int):
            fixed[name] = type_.shape[0]
    if len(set(fixed.values())) > 1 or (fixed and len(fixed) < len(session.inputs)):
        name = next(iter(fixed))
        raise InputError(_no_rows(name, session.inputs[name]))
    if fixed:
        name, batch = next(iter(fixed.items()))
        if wanted is not None and wanted != batch:
            raise InputError(
                f"the input {name!r} is {session.inputs[name]}: the batch of the model is fixed, leave out --batch"
            )
        return batch
    prepared = next((shape[0] for shape in _prepared(session).values() if shape), None)
    return wanted or prepared or _batch_by_size(session.inputs.values())


def _batch_by_size(types: Iterable[TensorType]) -> int:
    """Return the power of two of rows whose inputs have about as many bytes as fit a cache."""
    bytes_of_row = 0
    for type_ in types:
        dims = (type_.shape or (1,))[1:]
        other = _PICTURE if len(dims) == 3 else _OTHER
        bytes_of_row += math.prod(dim if isinstance(dim, int) else other for dim in dims) * type_.dtype.itemsize
    rows = max(1, min(_MOST_ROWS, _BATCH_BYTES // max(1, bytes_of_row)))
    return int(2 ** (rows.bit_length() - 1))


def _prepared(session: Session) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of the first plan of a .lite file."""
    plans = [] if session.file is None else [plan for target in session.file.targets for plan in target.plans]
    return {name: tuple(shape) for name, shape in plans[0].shapes.items()} if plans else {}


def _wanted_outputs(job: Job, session: Session) -> dict[str, str]:
    """Return the outputs to write, with the names of their columns.

    Raises:
        InputError: the model has no such output.
    """
    wanted = dict(job.results) or {name: name for name in session.outputs}
    for name in wanted:
        if name not in session.outputs:
            raise InputError(f"there is no output {name!r}; the outputs are {', '.join(session.outputs)}")
    return wanted


def _no_rows(name: str, type_: TensorType) -> str:
    return (
        f"the input {name!r} is {type_}, without a dimension for rows: a model can be mapped over rows if the first "
        "dimension of every input is the batch"
    )


def _not_rows(name: str, shape: Shape | Sequence[int | SymbolicDim], batch: int) -> str:
    return (
        f"the output {name!r} has the shape [{', '.join(map(str, shape))}] for a batch of {batch} rows: it does not "
        "have one row for each row of the input. Leave it out: --result NAME for each output to write"
    )
