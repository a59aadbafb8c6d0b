"""Passing a precision level on to a backend: by the session's option ``precision``, or by the backend's own option.

``Options.precision`` knows float16 and bfloat16. For int8, the backend needs an own option ``precision`` with the value
``"int8"``, which :class:`lite_core.backend.TakesOptions` checks and :attr:`lite_core.backend.Options.own` brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.judge.precision import Precision
from lite_core.backend import Backend, Options, TakesOptions
from lite_core.errors import InputError

__all__ = ["PrecisionRequest", "request_precision"]


@dataclass(frozen=True, slots=True)
class PrecisionRequest:
    """The request for a precision level, as a backend understands it.

    Attributes:
        options: for ``compile``.
        refusal: why the backend cannot be asked, or empty.
        session: the same request as arguments of :func:`lite_core.load`.
    """

    options: Options = field(default_factory=Options)
    refusal: str = ""
    session: Mapping[str, Any] = field(default_factory=dict)


def request_precision(backend: Backend, precision: Precision) -> PrecisionRequest:
    """Return how to ask a backend for a precision level.

    Raises:
        Failure: check_options() raised another exception than InputError.
    """
    wanted = precision.operands.value
    if not precision.is_low:
        return PrecisionRequest()
    if precision.operands.is_half:
        return PrecisionRequest(Options(precision=wanted), session={"precision": wanted})
    own = {"precision": wanted}
    if not isinstance(backend, TakesOptions):
        return PrecisionRequest(refusal=f"the backend has no precision option, which {precision.name} needs")
    with backend_call(f"check_options({own})"):
        try:
            backend.check_options(own)
        except InputError as error:
            reason = f"the backend has no precision option with the value {wanted!r}: {error}"
            return PrecisionRequest(refusal=reason)
    return PrecisionRequest(Options(own=own), session={"backend_options": {backend.name: own}})
