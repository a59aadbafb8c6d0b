"""Documents of `lite bench` with made-up numbers, for tests of what shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["sample_document"]

_NAMES = ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")


def sample_document(names: tuple[str, ...] = ("x86, 1 thread", "opencl", "host"), **changes: Any) -> dict[str, Any]:
    """Return a document with latencies and a comparison; each result is five times slower than the one before."""
    results = [_result(name, 2.0 * 5**number, number) for number, name in enumerate(names)]
    found = {
        "schema_version": 1,
        "model": "mobilenet.onnx",
        "model_sha256": "00",
        "inputs": {"x": "random, seed 0"},
        "input_types": {"x": "float32[1, 3, 224, 224]"},
        "other_load": {"busy": 0.1, "processors": 4},
        "environment": {
            "processor": "Example CPU @ 3 GHz",
            "cores_of_use": 4,
            "system": "Linux 6",
            "python": "3.12",
            "numpy": "2.0",
            "packages": ["lite-core 0.1.0"],
        },
        "options": [{"name": "--warmup", "value": "3", "origin": "default"}],
        "notes": ["input x leaves its batch open"],
        "results": results,
        "agreement": {"ok": True, "sentences": ["outputs agree: the largest difference is 1e-06"]},
        "against": {
            "file": "before.json",
            "unlike": ["python: 3.11 then, 3.12 now"],
            "changes": [
                {
                    "name": names[0],
                    "figure": "median latency",
                    "before_ms": 1.8,
                    "after_ms": 2.0,
                    "verdict": "slower",
                    "text": "slower by 11 % (9.0 to 13 %)",
                }
            ],
            "measured_once": [{"name": names[0], "figure": "load", "before_ms": 3.0, "after_ms": 4.0}],
        },
    }
    return {**found, **changes}


def _result(name: str, median_ms: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    turns = [(median_ms * np.exp(rng.gamma(1.5, 0.03, 12))).tolist() for _ in range(12)]
    times = np.concatenate(turns)
    values = (times.mean(), times.std(), times.min(), *np.quantile(times, (0.5, 0.9, 0.95, 0.99)), times.max())
    figures = {f"latency_{key}_ms": float(value) for key, value in zip(_NAMES, values)}
    figures |= {"runs": times.size, "throughput_per_second": 1e3 / float(times.mean())}
    return {
        "name": name,
        "devices": ["x86"],
        "options": [{"name": "backend", "value": name, "origin": "command line"}],
        "load_ms": 120.0,
        "compile_ms": 300.0 / (seed + 1),
        "first_run_ms": 3 * median_ms,
        "code_from": "here",
        "kernels": {"x86": {"found": 30, "compiled": 2, "compile_ms": 80.0}},
        **figures,
        "under_load": {"concurrent": 4, **figures},
        "rss_before_mib": 40.0,
        "peak_rss_mib": {"load": 60.0, "compile": 90.0, "first_run": 91.0, "runs": None, "concurrent_runs": 120.5},
        "nodes": {"x86": 118, "host": 4},
        "refusals": [
            {"op": "NonZero", "device": "host", "refused_by": "x86", "reason": "no kernel", "nodes": 4},
        ],
        "notes": ["x86: failed to compile a partition"],
        "latencies_ms": turns,
        "latencies_under_load_ms": [[2.5 * time for time in turn] for turn in turns],
    }
