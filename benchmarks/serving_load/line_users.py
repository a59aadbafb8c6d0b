"""Users for locust who send text lines of different widths.

``locust --locustfile line_users.py --model NAME --input X``, in the environment of the clients.
"""

from __future__ import annotations

import json
import random

import numpy as np
from locust import FastHttpUser, events, task

WIDTHS = range(160, 640, 48)


@events.init_command_line_parser.add_listener
def _(parser) -> None:  # type: ignore[no-untyped-def]
    parser.add_argument("--model")
    parser.add_argument("--input")


class User(FastHttpUser):
    """Sends one line after the other."""

    def on_start(self) -> None:
        """Make the bodies of all widths."""
        options = self.environment.parsed_options
        self.path = f"/v2/models/{options.model}/infer"
        self.requests = []
        for width in WIDTHS:
            array = np.random.default_rng(width).uniform(-1, 1, (1, 3, 48, width)).astype(np.float32)
            tensor = {"name": options.input, "datatype": "FP32", "shape": array.shape}
            tensor["parameters"] = {"binary_data_size": array.nbytes}
            head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
            self.requests.append((head + array.tobytes(), {"Inference-Header-Content-Length": str(len(head))}))

    @task
    def ask(self) -> None:
        """Send a line of a random width."""
        body, headers = random.choice(self.requests)
        self.client.post(self.path, data=body, headers=headers)
