"""Users for locust, who ask for sums by HTTP and check them: each answer must be that of its own request."""

from __future__ import annotations

import itertools
from typing import Any

from locust import FastHttpUser, task


class User(FastHttpUser):
    """Asks for sums of different numbers of rows, each user of its own numbers."""

    users = itertools.count()
    requests = itertools.count()

    def on_start(self) -> None:
        """Choose the numbers."""
        self.first = next(self.users) * 1000.0

    @task
    def ask(self) -> None:
        """Ask for a sum and check it."""
        number = next(self.requests)
        shape = [1 + number % 4, 3]
        a = [self.first + index for index in range(3 * shape[0])]
        tensors = [{"name": name, "datatype": "FP32", "shape": shape, "data": a} for name in ("a", "b")]
        with self.client.post("/v2/models/sum/infer", json={"inputs": tensors}, catch_response=True) as answer:
            outputs: list[dict[str, Any]] = answer.json()["outputs"] if answer.status_code == 200 else []
            if not outputs or outputs[0]["data"] != [2 * value for value in a] or outputs[0]["shape"] != shape:
                answer.failure(f"{answer.status_code}: {answer.text[:200]}")
