"""A request from its arrival to its answer, whichever way it came: its name, its time, and what is told about it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lite_serve.models.metrics import Metrics
from lite_serve.protocol.errors import DeadlineError, FailedModelError, InvalidRequestError, ProtocolError
from lite_serve.protocol.messages import InferRequest, InferResponse
from lite_serve.server.logs import ACCESS, SERVER, new_request_id

__all__ = [
    "LARGE_BYTES",
    "LARGE_TEXT",
    "Call",
    "Recorder",
    "in_thread_above",
    "note_request",
    "note_response",
    "time_left",
    "timeout_of",
    "told",
]

#: Bytes from which decoding and encoding are done in a thread, because others would wait for more than a millisecond.
#: Text costs a hundred times as much as bytes that are only copied.
LARGE_TEXT, LARGE_BYTES = 32 << 10, 4 << 20
Result = TypeVar("Result")


@dataclass(slots=True)
class Call:
    """A request that is being answered.

    Attributes:
        protocol: ``"http"`` or ``"grpc"``.
        method: what was called: ``POST /v2/models/m/infer``, or ``ModelInfer``.
        began: when it arrived, by :func:`time.perf_counter`.
        request_id: its name in the log and in the answer.
        model: the model; empty if it is about none.
        version: the version; that of the answer as soon as it is known.
        batch: the rows of the run that answered it; None if nothing ran.
        bytes_in: bytes of its body.
        bytes_out: bytes of the answer's body.
        status: the HTTP status or the name of the gRPC code of the answer.
        outcome: ``"ok"``, or the name of an error.
    """

    protocol: str
    method: str
    began: float = field(default_factory=time.perf_counter)
    request_id: str = ""
    model: str = ""
    version: str = ""
    batch: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    status: int | str = ""
    outcome: str = "ok"
    is_inference: bool = False

    def identify(self, given: str = "") -> str:
        """Return the name of the request: the one it has, else the given one, else a new one."""
        self.request_id = self.request_id or given or new_request_id()
        return self.request_id


class Recorder:
    """Tells logs and metrics about requests that were answered.

    Args:
        metrics: counts requests for inference.
        log_requests: whether each request is logged.
    """

    def __init__(self, metrics: Metrics, log_requests: bool = True) -> None:
        self._metrics = metrics
        self._logs = log_requests

    def done(self, call: Call) -> None:
        """Log and count a request."""
        seconds = time.perf_counter() - call.began
        if call.is_inference:
            self._metrics.request_done(
                call.protocol, call.model, call.version, call.outcome, seconds, call.bytes_in, call.bytes_out
            )
        if self._logs and ACCESS.isEnabledFor(logging.INFO):
            fields = {
                "status": call.status,
                "ms": round(seconds * 1e3, 2),
                "protocol": call.protocol,
                "model": call.model,
                "version": call.version,
                "batch": call.batch,
                "bytes_in": call.bytes_in,
                "bytes_out": call.bytes_out,
                "outcome": call.outcome,
                "request_id": call.identify(),
            }
            ACCESS.info(call.method, extra={"fields": fields})


def told(call: Call, error: BaseException) -> ProtocolError:
    """Return the error that the client is told, and log what only the log may tell.

    An error that is none of the protocol's is a fault of the server: the client learns the request's name, and the log
    has the traceback.
    """
    call.identify()
    fields = {"request_id": call.request_id, "model": call.model}
    if isinstance(error, ProtocolError):
        if isinstance(error, FailedModelError) or type(error) is ProtocolError:
            SERVER.error(f"{call.method} failed", exc_info=error, extra={"fields": fields})
        return error
    SERVER.error(f"{call.method} failed", exc_info=error, extra={"fields": fields})
    return ProtocolError(f"the server failed to answer; its log says why, for request {call.request_id}")


def note_request(call: Call, request: InferRequest) -> None:
    """Take over what a request for inference says about itself."""
    call.model, call.version = request.model, request.version
    call.identify(request.id if request.id.isascii() and request.id.isprintable() and " " not in request.id else "")


def note_response(call: Call, response: InferResponse) -> None:
    """Take over what an answer says about itself."""
    call.version = response.version
    batch = response.parameters.get("batch_size")
    call.batch = batch if isinstance(batch, int) else None


def time_left(call: Call, most: float, *others: float | None) -> float:
    """Return the seconds that a request still has.

    Args:
        call: the request.
        most: seconds that it may take since it began.
        others: seconds from now on that other limits leave, such as the client's.

    Raises:
        DeadlineError: there is no time left.
    """
    left = min([most - (time.perf_counter() - call.began), *(each for each in others if each is not None)])
    if left <= 0:
        raise DeadlineError(f"the request was not answered within its time, at most {most:g} s")
    return left


def timeout_of(request: InferRequest) -> float | None:
    """Return the seconds that a request itself sets, by Triton's parameter ``timeout`` in microseconds; None for none.

    Raises:
        InvalidRequestError: it is not a number.
    """
    found = request.parameters.get("timeout")
    if found is None or found == 0:  # Triton: 0 is no limit
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not found > 0:
        raise InvalidRequestError(f"the parameter timeout must be a number of microseconds, is {str(found)[:100]!r}")
    return found / 1e6


async def in_thread_above(size: int, limit: int, work: Callable[[], Result]) -> Result:
    """Return the result of work on some bytes; if they are more than a limit, a thread does it, and others go on."""
    if size <= limit:
        return work()
    return await asyncio.get_running_loop().run_in_executor(None, work)
