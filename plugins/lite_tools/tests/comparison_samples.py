"""Reports of comparisons for tests of the page, made without running models."""

from __future__ import annotations

import base64
import random
from typing import Any

__all__ = ["HOSTILE", "errors_of", "hostile_report", "large_report", "sample_report"]

#: Names that must stay text wherever they are shown.
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "\"><img src=x onerror='window.broken=1'>",
    "<!--",
    "{{script}} {style} ${data} %s",
    "\u202edesrever\u2028\x00\x1b[31m\ud800",
    "]]>&amp;'\"`",
)


def errors_of(relative: float, *, nan: int = 0, elements: int = 4096) -> dict[str, Any]:
    """Return errors of an array whose largest element is 10."""
    worst = relative * 10
    return {
        "max_abs": worst, "mean_abs": worst / 9, "max_rel": relative * 3, "max_ulp": int(relative * 2**24),
        "cosine": 1 - min(relative, 1), "relative": relative, "nan_a": 0, "nan_b": nan, "inf_a": 0, "inf_b": 0,
        "misplaced": nan, "different": elements // 2 if relative else 0, "elements": elements, "at": [0, 3, 1, 7],
        "value_a": 0.3, "value_b": "nan" if nan else 0.3 + worst,
    }  # fmt: skip


def _row(index: int, name: str, op: str, inputs: list[str], error: float, **changes: Any) -> dict[str, Any]:
    row = {
        "index": index, "value": f"{name}.out", "type": "float32[1, 8, 16, 32]", "nodes": [name], "op": op,
        "inputs": inputs, "origin": f"conv2d '{name}'", "attributes": {"strides": "[2, 2]"}, "kernel_a": "host",
        "kernel_b": f"{op.lower()}_kernel", "device_a": "host", "device_b": "x86", "occurrence": 0,
        "local": errors_of(error), "accumulated": errors_of(error * 4), "noise": None,
        "status": "rounding" if error else "equal", "reason": "", "histogram": None, "picture": None,
    }  # fmt: skip
    return {**row, **changes}


def _report(rows: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    side = {
        "devices": ["x86", "host"],
        "can_be_observed": True,
        "file": "model.onnx",
        "versions": {"lite-x86": "0.1.0"},
    }
    report = {
        "schema_version": 1, "model": "model.onnx",
        "inputs": [{"name": "x", "type": "float32[1, 3, 32, 32]", "source": "random, seed 0"}],
        "a": {"label": "host", "options": {"threads": 1, "precision": "float32", "passes": True}, **side},
        "b": {"label": "x86", "options": {"threads": 2, "precision": "float32", "passes": True}, **side},
        "verdict": "agree", "summary": "host and x86 agree.", "first": None, "rows": rows, "not_compared": [],
        "outputs": [{"name": "y", "errors": errors_of(1e-6)}], "inside": None, "runs": None, "repro": None,
        "settings": {"seed": 0, "tolerance": None}, "environment": {"machine": "processor", "python": "3.11"},
    }  # fmt: skip
    return {**report, **changes}


def sample_report() -> dict[str, Any]:
    """Return a report with every part: a diverging step, noise, gaps, an inside, changing runs, a script to repeat."""
    pixels = base64.b64encode(bytes(i % 256 for i in range(16 * 12))).decode()
    histogram = {"edges": [i / 2 for i in range(-20, 5)], "counts": [0, 0, 3, 40, 200, 90, 7, 0, 1] + [0] * 15}
    suspect = {
        "histogram": histogram, "noise": {"floor": 2.1e-5, "a": 1.3e-5, "b": 4.0e-2},
        "picture": {"width": 16, "height": 12, "scale": 0.04, "pixels": pixels},
    }  # fmt: skip
    rows = [
        _row(0, "conv_0", "Conv+Relu", ["x"], 2e-7, nodes=["conv_0", "relu_0"]),
        _row(1, "pool_0", "MaxPool", ["conv_0.out"], 0.0),
        _row(2, "conv_1", "Conv", ["pool_0.out"], 3e-3, status="diverges", reason="more than rounding", **suspect),
        _row(3, "add_0", "Add", ["conv_1.out", "pool_0.out", "hidden"], 1e-7),
        _row(
            4, "exp_0", "Exp", ["add_0.out"], 0.0, local=None, accumulated=None, status="not compared", reason="fused"
        ),
        _row(5, "softmax_0", "Softmax", ["exp_0.out"], 1e-7, accumulated=errors_of(0.2, nan=3), status="suspect"),
    ]
    return _report(
        rows,
        verdict="differ",
        summary="The first step that diverges is conv_1 (Conv). At [0, 3, 1, 7] it is 0.33 instead of 0.3.",
        first=2,
        inside=[_row(0, "conv_1", "Conv", ["pool_0.out"], 3e-3, status="diverges")],
        not_compared=[{"value": "hidden", "nodes": ["mul_0"], "reason": "only b computes it"}],
        runs={"count": 4, "changing": ["softmax_0.out"]},
        repro={"script": "compare-conv_1.py", "arrays": "compare-conv_1.npz"},
    )


def hostile_report() -> dict[str, Any]:
    """Return a report in which every text that comes from a model is hostile."""
    rows = []
    for index, text in enumerate(HOSTILE):
        before = [f"{HOSTILE[index - 1]}.out"] if index else [HOSTILE[0]]
        row = _row(index, text, text, before, 1e-3, status="diverges", reason=text, origin=text, kernel_b=text)
        rows.append({**row, "attributes": {text: text}, "type": text, "device_b": text})
    text = HOSTILE[0]
    return _report(
        rows,
        model=text, summary=text, verdict="differ", first=0, inside=rows[:1],
        inputs=[{"name": text, "type": text, "source": text}], outputs=[{"name": text, "errors": errors_of(1.0)}],
        not_compared=[{"value": text, "nodes": [text], "reason": text}], runs={"count": 2, "changing": [text]},
        repro={"script": text, "arrays": text}, settings={text: text}, environment={text: text},
    )  # fmt: skip


def large_report(count: int) -> dict[str, Any]:
    """Return a report of a network with residual connections and ``count`` steps."""
    generator = random.Random(1)
    rows = []
    for index in range(count):
        inputs = [f"node_{index - 1}.out"] if index else ["x"]
        if index % 5 == 4:
            inputs.append(f"node_{index - 4}.out")
        rows.append(
            _row(index, f"node_{index}", "Add" if index % 5 == 4 else "Conv", inputs, generator.random() * 1e-6)
        )
    return _report(rows)
