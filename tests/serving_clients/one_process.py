"""The server of lite-serve and tritonclient.grpc in one process, whose messages have the same names.

``one_process.py MODELS`` does it in two processes: in one tritonclient is imported first, in the other the server.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np

TRITON, SERVER = "tritonclient.grpc", "lite_serve.server.running"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ask(port: int) -> None:
    """Ask until the server is ready, then for an answer; end the process as a user does."""
    import tritonclient.grpc as triton
    from tritonclient.utils import InferenceServerException

    client = triton.InferenceServerClient(f"127.0.0.1:{port}")
    for _ in range(600):
        try:
            if client.is_server_ready():
                break
        except InferenceServerException:
            time.sleep(0.1)
    x = triton.InferInput("x", [1, 3], "FP32")
    x.set_data_from_numpy(np.arange(3, dtype=np.float32)[None])
    print("tritonclient:", client.infer("echo_fp32", [x]).as_numpy("y").tolist(), file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    models, *order = sys.argv[1:]
    if not order:
        for order in ([TRITON, SERVER], [SERVER, TRITON]):
            subprocess.run([sys.executable, __file__, models, *order], check=True)
        return
    for module in order:
        importlib.import_module(module)
    from lite_core.launcher import main as lite

    port = free_port()
    threading.Thread(target=ask, args=[port], daemon=True).start()
    sys.argv = ["lite", "serve", models, "--http-port", "0", "--grpc-port", str(port)]
    sys.exit(lite())


if __name__ == "__main__":
    main()
