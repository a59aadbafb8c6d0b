"""Ten sessions of one model file in each of two processes: the weights are in memory once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import catalog
import pytest

import lite_core

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="shared memory is read from /proc"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor"),
]

MODEL = "mobilenet_v2-legacy"
SHAPE = (1, 3, 224, 224)

#: Loads ten sessions and runs each. Prints a hash of the outputs, and by how much the last nine sessions increased the
#: process's private memory, without their arenas. On request, prints the resident size of the mapped file, and the
#: process's proportional share of it.
TEN_SESSIONS = """
import hashlib, sys
import numpy as np
import lite_core

def own():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def of_file(path):
    found, inside = {"Rss": 0, "Pss": 0}, False
    with open("/proc/self/smaps") as maps:
        for line in maps:
            field, value = line.split(None, 1)
            if not field.endswith(":"):
                inside = value.rstrip().endswith(path)
            elif inside and field[:-1] in found:
                found[field[:-1]] += 1024 * int(value.split()[0])
    return found["Rss"], found["Pss"]

path = sys.argv[1]
x = np.linspace(-1, 1, 3 * 224 * 224, dtype=np.float32).reshape(1, 3, 224, 224)
sessions, answers, sizes = [], set(), []
for _ in range(10):
    sessions.append(lite_core.load(path, backend="x86", threads=1))
    (answer,) = sessions[-1].run({name: x for name in sessions[-1].inputs}).values()
    answers.add(hashlib.sha256(answer.tobytes()).hexdigest())
    sizes.append(own())
assert not any(session.notes for session in sessions), sessions[0].notes
print(*answers, flush=True)
arena = sum(size for _, size in sessions[0].plan({name: x.shape for name in sessions[0].inputs}).arenas)
print(sizes[-1] - sizes[0] - 9 * arena, flush=True)
sys.stdin.readline()
print(*of_file(path), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "model.lite"
    (name,) = lite_core.load(catalog.ensure(MODEL).model, backend="host").inputs
    lite_core.convert(catalog.ensure(MODEL).model, path, "x86", shapes={name: SHAPE}, threads=1, verify=False)
    return path


def test_ten_sessions_and_two_processes_have_the_weights_once(file: Path) -> None:
    weights = sum(array.nbytes for array in lite_core.read_model(file).constants.values())
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TEN_SESSIONS, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for _ in range(2)
    ]
    try:
        lines = [[_line(process) for process in processes] for _ in range(2)]
        answers, growths = lines
        assert answers[0] == answers[1]
        assert len(answers[0].split()) == 1
        # Copies of the weights would add nine times their size.
        assert max(map(int, growths)) < weights
        for process in processes:  # both have run and hold their sessions, so all twenty share memory now
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for resident, proportional in [map(int, _line(process).split()) for process in processes]:
            assert resident > weights  # the packed weights in the file
            assert proportional < 0.6 * resident  # each page exists once, and half of it counts for each process
    finally:
        for process in processes:
            process.communicate("\n", timeout=60)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "the process ended early"
    return line
