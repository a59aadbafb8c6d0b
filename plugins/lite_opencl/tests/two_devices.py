"""Run sessions on two devices, and one on both, from several threads; print the findings as JSON.

This is a script for a separate process, since PoCL reads the number of its devices when it is loaded.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from test_threads import network, pictures

import lite_core as lite
from lite_core.ops.evaluate import evaluate_graph

LABELS = ["opencl", "opencl:1"]


def main() -> None:
    graph, inputs = network(), pictures(15)
    sessions = [lite.load(graph, label, fallback="never") for label in LABELS]
    sessions.append(lite.load(graph, LABELS, fallback="never", placement={"conv*": "opencl:1", "gemm*": "opencl"}))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: sessions[i % 3].run({"x": inputs[i]})["y"], range(len(inputs))))
    differences = [np.abs(y - evaluate_graph(graph, [x])[0]).max() for x, y in zip(inputs, results)]
    profile = lite.RunProfile()
    sessions[2].run({"x": inputs[0]}, profile=profile)
    found = {
        "worst": float(max(differences)),
        "devices": [sorted(session.devices) for session in sessions],
        "copies": sorted({(copy.source, copy.target) for copy in profile.copies}),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
