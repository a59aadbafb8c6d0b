"""One loaded version of a model: its session, its queue and the threads that run it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Mapping, Sequence

import lite_core as lite
from lite_core.errors import ExecutionError, GraphError, InputError, RunTimeoutError, SessionClosedError
from lite_core.formats import find_model
from lite_core.processors import useful_threads
from lite_serve.models.batching import Batching, Key, joined, parts_of
from lite_serve.models.folder import FoundVersion, fingerprint
from lite_serve.models.metrics import Metrics, ModelState
from lite_serve.models.queue import Answer, Pending, RequestQueue, timed_out
from lite_serve.models.settings import ModelSettings
from lite_serve.models.signature import ModelSignature
from lite_serve.protocol.errors import DeadlineError, FailedModelError, InvalidRequestError, ProtocolError
from lite_serve.protocol.messages import Array

__all__ = ["ServedVersion"]

logger = logging.getLogger("lite.serve.models")


class ServedVersion:
    """A loaded version of a model.

    Args:
        found: where it is.
        settings: the settings of the models.
        metrics: counts its runs.

    Raises:
        LiteError: it cannot be loaded, or the protocol lacks one of its element types.
    """

    def __init__(self, found: FoundVersion, settings: ModelSettings, metrics: Metrics) -> None:
        assert found.path is not None
        self.model, self.version = found.model, found.version
        self.path = found.path
        self.files = fingerprint(found)
        self.instances, self.threads = _division(settings)
        backend = settings.backend if isinstance(settings.backend, str) else list(settings.backend)
        self.session = lite.load(
            found.path,
            backend,
            self.threads,
            settings.precision,
            plans=settings.plans,
            saved=settings.saved,
            taps=(),  # a model's own taps would print requests
        )
        try:
            self.signature = ModelSignature(self.model, self.session)
            for shapes in _expected_shapes(self.session)[: settings.plans]:
                self.session.prepare(shapes)
        except BaseException:
            self.session.close()
            raise
        self.platform = f"lite_{find_model(found.path).reader.name}"
        self._batching = Batching(self.session, settings.batching, settings.largest_batch)
        self._notes = list(found.notes)
        self._queue = RequestQueue(
            settings.most_queued, settings.largest_batch, settings.batch_delay, self._batching.choose
        )
        self._running = 0
        self._count_lock = threading.Lock()
        self._devices: dict[tuple[tuple[int, ...], ...], tuple[str, ...]] = {}
        self._state = self.state
        self._metrics = metrics
        self._own_metrics = metrics.loaded(self.model, self.version, self._state)
        self._threads = [
            threading.Thread(target=self._work, name=f"{self.model}/{self.version}/{number}", daemon=True)
            for number in range(self.instances)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def notes(self) -> list[str]:
        """Lines that a user should know: which file it is, what of it is not used, and how requests are batched."""
        return [*self._notes, *self.session.notes, self._batching.note]

    @property
    def properties(self) -> dict[str, str]:
        """Facts for the model's metadata."""
        return {
            "devices": ", ".join(self.session.devices),
            "selection": "; ".join(self.session.selection_log),
            "instances": str(self.instances),
            "threads": str(self.threads),
            **self._batching.properties,
        }

    def state(self) -> ModelState:
        """Return the facts that change."""
        try:
            hits, misses, evictions, *_ = self.session.plan_statistics
        except SessionClosedError:  # while the metrics were read
            hits = misses = evictions = 0
        return ModelState(len(self._queue), self._running, hits, misses, evictions)

    async def run(self, inputs: Mapping[str, Array], timeout: float | None, id: str) -> Answer:
        """Queue a request, and wait for its outputs.

        Raises:
            ProtocolError: the queue is full, the time is over, or the model failed.
        """
        if timeout is not None and timeout <= 0:
            raise DeadlineError("the time of the request was over when it arrived")
        pending = Pending(inputs, *self._batching.key_of(inputs), timeout, id)
        self._queue.put(pending)
        timer = None if timeout is None else pending.loop.call_later(timeout, self._expire, pending)
        try:
            return await pending.future
        except asyncio.CancelledError:
            self._queue.discard(pending)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Finish what was accepted, then free the session. Blocks."""
        self._queue.close()
        for thread in self._threads:
            thread.join()
        self._metrics.unloaded(self.model, self.version, self._state)
        self.session.close()

    # **** in the event loop ****

    def _expire(self, pending: Pending) -> None:
        was_queued = self._queue.discard(pending)
        pending.answer(timed_out(pending, "in the queue" if was_queued else "while the model ran"))

    # **** in the threads ****

    def _work(self) -> None:
        while taken := self._queue.take():
            self._answer([pending for pending in taken if not pending.is_abandoned])
            self._check_batches(taken[0].key, taken[0].inputs)
            del taken  # an idle instance holds no requests

    def _check_batches(self, key: Key | None, example: Mapping[str, Array]) -> None:
        if self._batching.needs_check(key):
            assert key is not None
            self._batching.check(key, example)
            logger.info("model %r, version %s: %s", self.model, self.version, self._batching.note)

    def _answer(self, requests: Sequence[Pending]) -> None:
        """Run requests, together if they are several, and send their answers to the event loops that wait for them."""
        now = time.monotonic()
        for pending in requests:
            self._own_metrics.queue_seconds.observe(now - pending.put_at)
        self._count(len(requests))
        if len(requests) > 1 and (answers := self._run_together(requests)):
            self._send(requests, answers)
            return
        for pending in requests:
            self._send([pending], [self._run_alone(pending)])

    def _run_alone(self, pending: Pending) -> Answer | ProtocolError:
        try:
            if pending.deadline is not None and time.monotonic() >= pending.deadline:
                return timed_out(pending, "before the model ran")
            return Answer(self._run(pending.inputs, [pending]), pending.rows, 1)
        except RunTimeoutError:
            return timed_out(pending, "while the model ran")
        except BaseException as error:  # whatever a plugin raises, the thread lives on
            if reason := _fault_of_inputs(error):
                return InvalidRequestError(f"model {self.model!r} cannot run with these inputs: {reason}")
            id = pending.id or uuid.uuid4().hex[:16]
            logger.exception("model %r, version %s failed, request %s", self.model, self.version, id)
            return FailedModelError(f"model {self.model!r}, version {self.version} failed on request {id}, see the log")

    def _run_together(self, requests: Sequence[Pending]) -> list[Answer]:
        """Run requests as one batch, and return their answers; an empty list if they must run one by one."""
        rows = [pending.rows for pending in requests]
        key = requests[0].key
        size = None if key is None else self._batching.size_for(key, sum(rows))
        if size is None:  # some of them were abandoned
            return []
        try:
            outputs = self._run(joined([pending.inputs for pending in requests], size), requests)
        except BaseException as error:  # one of them may be at fault: alone, only that one fails
            logger.debug("a batch of model %r failed: %s", self.model, error)
            return []
        return [Answer(part, sum(rows), len(rows)) for part in parts_of(outputs, rows)]

    def _run(self, inputs: Mapping[str, Array], requests: Sequence[Pending]) -> dict[str, Array]:
        """Run the model for some requests, within the longest time that one of them has, and count the run."""
        start = time.monotonic()
        deadlines = [pending.deadline for pending in requests if pending.deadline is not None]
        left = max(max(deadlines) - start, 1e-6) if len(deadlines) == len(requests) else None
        outputs = self.session.run(inputs, timeout=left)
        seconds, rows = time.monotonic() - start, sum(pending.rows for pending in requests)
        self._own_metrics.run_done(seconds, rows, len(requests), self._devices_for(inputs))
        return outputs

    def _devices_for(self, inputs: Mapping[str, Array]) -> tuple[str, ...]:
        """Return the labels of the devices that run the model for inputs of these shapes."""
        signature = tuple(array.shape for array in inputs.values())
        devices = self._devices.get(signature)
        if devices is None:
            if len(self._devices) >= 1024:
                self._devices.clear()
            plan = self.session.plan({name: array.shape for name, array in inputs.items()})
            devices = tuple(dict.fromkeys(label for _, label in plan.partitions))
            self._devices[signature] = devices
        return devices

    def _send(self, requests: Sequence[Pending], results: Sequence[Answer | ProtocolError]) -> None:
        """Pass answers to the event loops that wait for them."""
        self._count(-len(requests))
        for loop in {pending.loop for pending in requests}:
            own = [(pending, result) for pending, result in zip(requests, results) if pending.loop is loop]
            try:
                loop.call_soon_threadsafe(_set_answers, own)
            except RuntimeError:  # the loop is closed: nobody waits
                logger.debug("%d requests were answered after their event loop had ended", len(own))

    def _count(self, more: int) -> None:
        with self._count_lock:
            self._running += more


def _set_answers(answered: Sequence[tuple[Pending, Answer | ProtocolError]]) -> None:
    for pending, result in answered:
        pending.answer(result)


def _fault_of_inputs(error: BaseException) -> str:
    """Return what is wrong with the inputs of a run that failed; empty if the model or a backend is at fault.

    Kernels and references check what depends on the elements, such as an index, and raise errors of their own: these
    have no other error as their cause.
    """
    if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
        return "it needs more memory than there is"
    is_checked = isinstance(error, ExecutionError) and error.__cause__ is None
    return str(error) if is_checked or isinstance(error, (InputError, GraphError)) else ""


def _expected_shapes(session: lite.Session) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes whose plans are made before the first request: those of the file, else one row."""
    plans = [plan for record in (session.file.targets if session.file else ()) for plan in record.plans]
    if plans:
        return [dict(plan.shapes) for plan in plans]
    shapes: dict[str, tuple[int, ...]] = {}
    for name, type_ in session.inputs.items():
        dims = type_.shape or ()
        sizes = [dim if isinstance(dim, int) else 1 for dim in dims]
        if type_.shape is None or any(not isinstance(dim, int) for dim in dims[1:]):
            return []
        shapes[name] = tuple(sizes)
    return [shapes]


def _division(settings: ModelSettings) -> tuple[int, int]:
    """Return the instances of a model, and the threads of each run."""
    useful = useful_threads()
    # Runs side by side in one thread each answer more requests than one run at a time in all threads, a quarter more on
    # two cores: nothing waits for the slowest thread of each layer.
    threads = settings.threads or max(1, useful // settings.instances if settings.instances else 1)
    return settings.instances or max(1, useful // threads), threads
