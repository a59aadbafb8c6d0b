"""The settings of the models of a server."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.errors import InputError

__all__ = ["BATCHING", "VERSIONS", "ModelSettings"]

#: The ways of batching: batch only what stays bit-equal to single requests, whatever can be batched, nothing.
BATCHING = ("exact", "fast", "off")
#: The versions that are loaded at the start.
VERSIONS = ("newest", "all")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings that are alike for all models of a server.

    Attributes:
        backend: the backends to use, as in :func:`lite_core.load`: ``"auto"``, or one or more in order of preference.
        threads: threads of one run; by default one, or the useful cores divided by ``instances``. More threads answer
            a single request sooner, and fewer requests in all.
        instances: runs of a model at once, each in a thread of its own; by default the useful cores divided by
            ``threads``. Weights are in memory once.
        precision: as in :func:`lite_core.load`; by default that of the model's file, else float32.
        saved: use of the code in .lite files, as in :func:`lite_core.load`.
        most_queued: requests that may wait for each version of a model; further ones are refused.
        batching: one of :data:`BATCHING`.
        largest_batch: rows of a batch at most, at least 1.
        batch_delay: seconds that a request may wait for others to share its batch with. With 0, a request starts at
            once if an instance is idle, and batches form of requests that wait for a busy instance.
        versions: one of :data:`VERSIONS`. With ``"newest"``, the first request for an older version loads it.
        name: the name of the model, if the server has one model; by default that of its file or folder.
        plans: plans that each session caches, see :func:`lite_core.load`.
    """

    backend: str | tuple[str, ...] = "auto"
    threads: int | None = None
    instances: int | None = None
    precision: str | None = None
    saved: str | None = None
    most_queued: int = 256
    batching: str = "exact"
    largest_batch: int = 8
    batch_delay: float = 0.0
    versions: str = "newest"
    name: str = ""
    plans: int = 64

    def __post_init__(self) -> None:
        for name in ("threads", "instances", "most_queued", "largest_batch", "plans"):
            number = getattr(self, name)
            is_optional = name in ("threads", "instances")
            if not (number is None and is_optional) and (type(number) is not int or number < 1):
                raise InputError(f"{name} must be a whole number, at least 1, is {number!r}")
        for name, known in (("batching", BATCHING), ("versions", VERSIONS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, is {getattr(self, name)!r}")
        is_number = isinstance(self.batch_delay, (int, float)) and not isinstance(self.batch_delay, bool)
        if not is_number or not 0 <= self.batch_delay <= 60:
            raise InputError(f"batch_delay must be a number of seconds from 0 to 60, is {self.batch_delay!r}")
