"""The metrics of a server, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["Metrics", "ModelMetrics", "ModelState"]

#: Upper bounds of the histograms of seconds: from a tenth of a millisecond, three for each power of ten.
_SECONDS = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
_OF_MODEL = ("model", "version")
#: Stands for the names of models that there are not: a client may ask for any number of them.
_UNKNOWN = ""
#: The most values of the label ``outcome``, and of ``protocol``; later ones count as ``other``.
_MOST_VALUES = 32


class ModelState(NamedTuple):
    """Facts about a loaded version of a model, read when the metrics are.

    Attributes:
        queued: requests that wait.
        running: requests that run.
        hits: runs whose plan was in the cache.
        misses: plans that had to be made.
        evictions: plans that were evicted from the cache.
    """

    queued: int
    running: int
    hits: int
    misses: int
    evictions: int


class ModelMetrics:
    """The metrics of one version of a model.

    Attributes:
        queue_seconds: seconds in the queue, for each request.
        run_seconds: seconds in the model, for each run.
        batch_rows: rows of each run, without rows that only fill a batch up.
        batch_requests: requests of each run.
    """

    def __init__(self, metrics: Metrics, model: str, version: str) -> None:
        self._device_runs = metrics._device_runs
        self._labels = model, version
        self._runs: dict[str, Counter] = {}
        self.queue_seconds = metrics._queue_seconds.labels(model, version)
        self.run_seconds = metrics._run_seconds.labels(model, version)
        self.batch_rows = metrics._batch_rows.labels(model, version)
        self.batch_requests = metrics._batch_requests.labels(model, version)

    def run_done(self, seconds: float, rows: int, requests: int, devices: Iterable[str]) -> None:
        """Count a run.

        Args:
            seconds: seconds in the model.
            rows: rows of the requests.
            requests: how many requests were answered.
            devices: labels of the devices that took part.
        """
        self.run_seconds.observe(seconds)
        self.batch_rows.observe(rows)
        self.batch_requests.observe(requests)
        for device in devices:
            if device not in self._runs:
                self._runs[device] = self._device_runs.labels(*self._labels, device)
            self._runs[device].inc()


class Metrics:
    """The metrics of one server, in a registry of their own. Thread-safe.

    Attributes:
        registry: the registry.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self._requests = Counter(
            "lite_requests",
            "Requests answered, by outcome: ok, or the name of an error",
            ("protocol", *_OF_MODEL, "outcome"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "lite_request_seconds",
            "Seconds from the arrival of a request to its answer",
            ("protocol", *_OF_MODEL),
            buckets=_SECONDS,
            registry=registry,
        )
        self._bytes_in = Counter(
            "lite_received_bytes", "Bytes of the bodies of requests", ("protocol", *_OF_MODEL), registry=registry
        )
        self._bytes_out = Counter(
            "lite_sent_bytes", "Bytes of the bodies of answers", ("protocol", *_OF_MODEL), registry=registry
        )
        self._queue_seconds = Histogram(
            "lite_queue_seconds",
            "Seconds that a request waited for an instance",
            _OF_MODEL,
            buckets=_SECONDS,
            registry=registry,
        )
        self._run_seconds = Histogram(
            "lite_run_seconds", "Seconds that a run of the model took", _OF_MODEL, buckets=_SECONDS, registry=registry
        )
        self._batch_rows = Histogram(
            "lite_batch_rows",
            "Rows of a run (dimension 0), without padding",
            _OF_MODEL,
            buckets=_COUNTS,
            registry=registry,
        )
        self._batch_requests = Histogram(
            "lite_batch_requests", "Requests that shared a run", _OF_MODEL, buckets=_COUNTS, registry=registry
        )
        self._device_runs = Counter(
            "lite_device_runs",
            "Runs in which a device of a backend computed nodes of the model",
            (*_OF_MODEL, "device"),
            registry=registry,
        )
        self._states: dict[tuple[str, str], Callable[[], ModelState]] = {}
        self._known: dict[str, set[str]] = {}
        self._values: dict[str, set[str]] = {"protocol": set(), "outcome": set()}
        registry.register(self)

    # **** for the servers ****

    def request_done(
        self,
        protocol: str,
        model: str,
        version: str,
        outcome: str,
        seconds: float,
        bytes_in: int,
        bytes_out: int,
    ) -> None:
        """Count a request that was answered.

        Args:
            protocol: how it came, such as ``"http"`` or ``"grpc"``.
            model: the model that it named. Names of models that there are not are counted together.
            version: the version that it named, or that answered; empty for the default.
            outcome: ``"ok"``, or the name of the error's class.
            seconds: seconds from its arrival to its answer.
            bytes_in: bytes of its body.
            bytes_out: bytes of the answer's body.
        """
        protocol, outcome = self._bounded("protocol", protocol), self._bounded("outcome", outcome)
        versions = self._known.get(model)
        model = _UNKNOWN if versions is None else model
        version = version if versions and version in versions else _UNKNOWN
        self._requests.labels(protocol, model, version, outcome).inc()
        self._request_seconds.labels(protocol, model, version).observe(seconds)
        self._bytes_in.labels(protocol, model, version).inc(bytes_in)
        self._bytes_out.labels(protocol, model, version).inc(bytes_out)

    def text(self) -> tuple[bytes, str]:
        """Return all metrics in the text format of Prometheus, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    # **** for the models ****

    def know(self, model: str, version: str) -> None:
        """Add the names of a model and of one of its versions to those that are labels."""
        self._known.setdefault(model, set()).add(version)

    def loaded(self, model: str, version: str, state: Callable[[], ModelState]) -> ModelMetrics:
        """Return the metrics of a version that was loaded.

        Args:
            model: the model's name.
            version: the version.
            state: returns facts that are read with the metrics. It replaces that of an earlier load.
        """
        self.know(model, version)
        self._states[model, version] = state
        return ModelMetrics(self, model, version)

    def unloaded(self, model: str, version: str, state: Callable[[], ModelState]) -> None:
        """Forget the state of a version, unless another load has replaced it."""
        if self._states.get((model, version)) == state:
            del self._states[model, version]

    def collect(self) -> list[Metric]:
        """Return what is counted elsewhere: called by the registry."""
        loaded = GaugeMetricFamily("lite_model_loaded", "1 for each version that is loaded", labels=_OF_MODEL)
        queued = GaugeMetricFamily("lite_queue_length", "Requests that wait for an instance", labels=_OF_MODEL)
        running = GaugeMetricFamily("lite_requests_running", "Requests that run in the model", labels=_OF_MODEL)
        plans = [
            CounterMetricFamily(f"lite_plan_cache_{what}", about, labels=_OF_MODEL)
            for what, about in (
                ("hits", "Runs whose plan was in the cache"),
                ("misses", "Plans that had to be made"),
                ("evictions", "Plans that were evicted from the cache"),
            )
        ]
        for labels, state in list(self._states.items()):
            now = state()
            loaded.add_metric(labels, 1)
            queued.add_metric(labels, now.queued)
            running.add_metric(labels, now.running)
            for family, number in zip(plans, (now.hits, now.misses, now.evictions)):
                family.add_metric(labels, number)
        return [loaded, queued, running, *plans]

    def describe(self) -> list[Metric]:
        """Return the names of what :meth:`collect` returns, without values: called by the registry."""
        return []

    def _bounded(self, label: str, value: str) -> str:
        """Return a label's value, or ``other`` if there were too many."""
        values = self._values[label]
        if value not in values:
            if len(values) >= _MOST_VALUES:
                return "other"
            values.add(value)
        return value
