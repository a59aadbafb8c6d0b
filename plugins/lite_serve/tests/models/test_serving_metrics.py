"""The metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from served_models import ask, serving, times

from lite_serve.models.metrics import Metrics

ONES = np.ones((2, 3), np.float32)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return all samples of the text by name and labels."""
    text, content_type = metrics.text()
    assert content_type.startswith("text/plain")
    families = text_string_to_metric_families(text.decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_runs_of_a_model_are_counted(tmp_path: Path) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with serving(times(tmp_path / "double.lite"), metrics, backend="host", batching="off") as repository:
            for _ in range(3):
                await ask(repository, "double", x=ONES)
            found = samples(metrics)
            labels = (("model", "double"), ("version", "1"))
            assert found["lite_model_loaded", labels] == 1
            assert found["lite_queue_length", labels] == 0
            assert found["lite_requests_running", labels] == 0
            assert found["lite_run_seconds_count", labels] == 3
            assert found["lite_queue_seconds_count", labels] == 3
            assert found["lite_batch_rows_sum", labels] == 6
            assert found["lite_batch_requests_sum", labels] == 3
            assert found["lite_plan_cache_misses_total", labels] == 2  # for one row when it was loaded, and for two
            assert found["lite_plan_cache_hits_total", labels] >= 2
            assert found["lite_device_runs_total", (("device", "host"), *labels)] == 3
            assert found["process_cpu_seconds_total", ()] > 0
        assert ("lite_model_loaded", labels) not in samples(metrics)

    asyncio.run(main())


def test_requests_are_counted_by_outcome_and_bytes() -> None:
    metrics = Metrics()
    metrics.know("double", "1")
    for outcome in ("ok", "ok", "DeadlineError"):
        metrics.request_done("http", "double", "1", outcome, 0.004, 100, 30)
    found = samples(metrics)
    labels = (("model", "double"), ("protocol", "http"), ("version", "1"))
    assert found["lite_received_bytes_total", labels] == 300
    assert found["lite_sent_bytes_total", labels] == 90
    assert found["lite_request_seconds_count", labels] == 3
    assert found["lite_request_seconds_bucket", (("le", "0.0025"), *labels)] == 0
    assert found["lite_request_seconds_bucket", (("le", "0.005"), *labels)] == 3
    by_outcome = {
        dict(labels)["outcome"]: value for (name, labels), value in found.items() if name == "lite_requests_total"
    }
    assert by_outcome == {"ok": 2, "DeadlineError": 1}


def test_clients_cannot_make_labels() -> None:
    metrics = Metrics()
    metrics.know("double", "1")
    before = len(samples(metrics))
    for number in range(1000):
        metrics.request_done("grpc", f"model {number}", "", "NotFoundError", 0.001, 1, 1)
        metrics.request_done("grpc", "double", str(number), "NotFoundError", 0.001, 1, 1)
        metrics.request_done(f"protocol {number}", "double", "1", f"outcome {number}", 0.001, 1, 1)
    found = samples(metrics)
    assert {dict(labels)["model"] for (name, labels) in found if name == "lite_requests_total"} == {"", "double"}
    assert len({dict(labels)["outcome"] for (name, labels) in found if name == "lite_requests_total"}) < 40
    assert len(found) - before < 5000


def test_servers_of_one_process_count_apart() -> None:
    first, second = Metrics(), Metrics()
    first.know("double", "1")
    first.request_done("http", "double", "1", "ok", 0.1, 1, 1)
    assert not [name for name, _ in samples(second) if name == "lite_requests_total"]
