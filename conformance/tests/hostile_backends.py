"""Backends that disturb their process; used on a command line as ``hostile_backends.py:name``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Memory, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Node
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_graph

Buffers = Sequence[Buffer]
#: Environment variable with the file to which backends write the numbers of processes.
PIDS = "HOSTILE_PIDS"


class Hostile(HostBackend):
    """A backend with correct Add and Relu, which calls ``disturb`` before each run."""

    name = "hostile"
    scratch_bytes: Any = 0

    def probe(self) -> Any:
        return [Device("hostile", name="hostile")]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in ("Add", "Relu") and not node.domain else No(f"no {node.qualified_op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Any:
        return _Executable(part, self)

    def disturb(self, inputs: Buffers) -> None:
        """Disturb the process; subclasses override this."""


class _Executable:
    def __init__(self, part: Partition, backend: Hostile) -> None:
        self.graph = part.graph
        self.backend = backend
        self.scratch_bytes = backend.scratch_bytes

    def run(self, inputs: Buffers, outputs: Buffers, scratch: Buffer | None) -> None:
        self.backend.disturb(inputs)
        for buffer, result in zip(outputs, evaluate_graph(self.graph, [b.data for b in inputs])):
            buffer.store(result)


def _note(pid: int) -> None:
    with Path(os.environ[PIDS]).open("a") as file:
        file.write(f"{pid}\n")


class prints(Hostile):
    """Writes to both output streams, through Python and directly."""

    def disturb(self, inputs: Buffers) -> None:
        print('{"record": {"case": "forged"}}', flush=True)
        os.write(1, b'{"record": 5}\nno line end')
        os.write(2, b"\xff\x00 no text " * 50_000)


class closes_stdout(Hostile):
    def disturb(self, inputs: Buffers) -> None:
        sys.stdout.close()
        with contextlib.suppress(OSError):
            os.close(1)


class reads_input(Hostile):
    """Reads standard input, which must be empty: it must neither get the suite's requests nor block."""

    def disturb(self, inputs: Buffers) -> None:
        if os.read(0, 100) or sys.stdin.read():
            raise RuntimeError("there was something to read")


class changes_everything(Hostile):
    """Changes global state: the folder, the environment, error settings, seeds and signal handlers."""

    def disturb(self, inputs: Buffers) -> None:
        os.chdir("/")
        os.environ.clear()
        np.seterr(all="raise")
        np.random.seed(0)
        random.seed(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class ignores_abort(Hostile):
    """Hangs and ignores SIGABRT, so that it cannot report its stack."""

    def disturb(self, inputs: Buffers) -> None:
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        threading.Event().wait()


class forks(Hostile):
    """Exits, and leaves a child process that keeps all streams open."""

    def disturb(self, inputs: Buffers) -> None:
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        _note(child)
        os._exit(9)


class starts_a_process(Hostile):
    """Starts a process that does not end."""

    def disturb(self, inputs: Buffers) -> None:
        _note(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid)


class endless_threads(Hostile):
    def disturb(self, inputs: Buffers) -> None:
        threading.Thread(target=threading.Event().wait).start()


class noisy_crash(Hostile):
    """Crashes after a lot of output, which must hide neither the example nor the stack."""

    def disturb(self, inputs: Buffers) -> None:
        os.write(2, b"loading a kernel\n" * 10_000)
        ctypes.string_at(0)


class exits_in_run(Hostile):
    """Raises SystemExit with exit code 0."""

    def disturb(self, inputs: Buffers) -> None:
        raise SystemExit(0)


class hangs(Hostile):
    def disturb(self, inputs: Buffers) -> None:
        if PIDS in os.environ:
            _note(os.getpid())
        threading.Event().wait()


class takes_a_second(Hostile):
    """Takes a second for each example, like a slow compiler."""

    def disturb(self, inputs: Buffers) -> None:
        threading.Event().wait(1.2)


class exits_in_supports(Hostile):
    def supports(self, node: Node, device: Device) -> Yes | No:
        raise SystemExit(0)


class dies_in_compile(Hostile):
    def compile(self, part: Partition, device: Device, options: Options) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class probe_raises(Hostile):
    def probe(self) -> Any:
        raise SystemExit("no driver")


class probe_generates(Hostile):
    def probe(self) -> Any:
        yield Device("hostile", name="hostile")


class strange_device(Hostile):
    """A backend with a device whose fields have wrong types."""

    def probe(self) -> Any:
        return [Device("hostile", name=7, score="high", details={"memory": object()})]  # type: ignore[arg-type, dict-item]


class strange_words(Hostile):
    """Refuses nodes with control characters, markup and a surrogate in the reason."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("\ud800 \x1b[31m \x00 [bold] ]]> <b>\nsecond line")


class scratch(Hostile):
    """A backend with an invalid scratch size."""

    def __init__(self, size: Any) -> None:
        self.scratch_bytes = size


class _Memory(HostMemory):
    space = "strange"


class _ReadOnly(_Memory):
    def download(self, data: Any) -> Any:
        copy = data.copy()
        copy.flags.writeable = False
        return copy


class _Strided(_Memory):
    def download(self, data: Any) -> Any:
        return np.repeat(data[..., None], 2, axis=-1)[..., 0]


class _Lists(_Memory):
    def download(self, data: Any) -> Any:
        return data.tolist()


class _Full(_Memory):
    def allocate(self, type: Any) -> Any:
        raise MemoryError("the device is full")


class memory(Hostile):
    """A backend with a memory with unusual behaviour."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def memory(self, device: Device) -> Memory:
        return self.kind()  # type: ignore[no-any-return]


class memory_raises(Hostile):
    def memory(self, device: Device) -> Memory:
        raise RuntimeError("no context")


scratch_negative, scratch_text, scratch_huge = scratch(-1), scratch("5"), scratch(10**15)
memory_read_only, memory_strided, memory_lists = memory(_ReadOnly), memory(_Strided), memory(_Lists)
memory_full, memory_none = memory(_Full), memory(lambda: None)
