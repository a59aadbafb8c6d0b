"""The commands of docs/serving.md and README lead to an answer: typed in a new environment, in their order."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_wheels import clean_environment

from worked_pages import Block, blocks, commands, matches
from workspace import ROOT

SERVING = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.full("serving"),
    pytest.mark.skipif(sys.platform != "linux", reason="the commands are those of a POSIX shell"),
]
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: make clients")

#: Makes the files that README's commands name.
FILES = """
import numpy as np, pyarrow as pa, pyarrow.parquet as parquet
import lite_core as lite, lite_onnx
b = lite.GraphBuilder("flowers")
weights = b.constant(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
b.output(b.add("Softmax", [b.add("MatMul", [b.input("x", "float32", ["n", 4]), weights])]), "scores")
lite_onnx.write(b.build(), "model.onnx")
x = np.random.default_rng(1).standard_normal((1000, 4)).astype(np.float32)
column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 4)
parquet.write_table(pa.table({"x": column, "number": np.arange(1000)}), "measurements.parquet")
"""
COUNT = """
import pyarrow.dataset as dataset
table = dataset.dataset("answers").to_table()
print(sorted(table["number"].to_pylist()) == list(range(1000)), table.schema.field("scores").type)
"""


class Newcomer:
    """Somebody who types into a new environment, in a folder where the checkout's files are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = clean_environment(folder / "environment")
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("LITE_", "PYTHON", "VIRTUAL_ENV"))}
        path = f"{self.python.parent}{os.pathsep}{variables['PATH']}"
        self.environment = variables | {"PATH": path, "LITE_CONFIG_DIR": str(folder / "configuration")}
        self.ports = free_ports(2)

    def typed(self, command: str, where: Path | None = None) -> str:
        """Type a command that succeeds; return what it prints."""
        done = subprocess.run(
            ["sh", "-c", self.with_ports(command)],
            cwd=where or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return self.without_ports(done.stdout)

    @contextmanager
    def serving(self, command: str) -> Iterator[str]:
        """Type a command that serves, until the end of the context; yield what it printed when it was ready."""
        ports = f"--http-port {self.ports[0]} --grpc-port {self.ports[1]}"
        process = subprocess.Popen(
            [*command.split(), *ports.split()],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if line.startswith("ready"):
                    break
            yield self.without_ports(printed)
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0, printed + rest

    def with_ports(self, text: str) -> str:
        """Replace the ports on the page, which others may use here."""
        return text.replace(":8000", f":{self.ports[0]}").replace(":8001", f":{self.ports[1]}")

    def without_ports(self, text: str) -> str:
        """Replace the ports by those on the page."""
        return text.replace(f":{self.ports[0]}", ":8000").replace(f":{self.ports[1]}", ":8001")


def free_ports(count: int) -> Sequence[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def section(text: str, title: str) -> str:
    found = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


@needs_curl
def test_an_answer_in_five_minutes(tmp_path: Path) -> None:
    first, ask, *others = blocks(section(SERVING, "An answer in five minutes"))
    newcomer = Newcomer(tmp_path)
    *installing, (serve, shown) = commands(first)
    for command, _ in installing:
        # The checkout's folder stays as it is: models go elsewhere.
        newcomer.typed(command.replace("--target models", f"--target {tmp_path / 'models'}"), where=ROOT)
    name = re.match(r"# (\S+)\n", ask.text)
    assert name is not None
    (tmp_path / name[1]).write_text(newcomer.with_ports(ask.text))
    with newcomer.serving(serve) as printed:
        assert matches(shown, printed + "\n"), printed
        for block in others:
            answered(newcomer, block)


def answered(newcomer: Newcomer, block: Block) -> None:
    for command, shown in commands(block):
        printed = newcomer.typed(command)
        assert matches(shown, printed), f"{command}\n{printed}"


@needs_curl
def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    install, serve, curl, mapping = re.findall(
        r"^    (.+)$", section(README, "Many requests, many machines"), re.MULTILINE
    )
    newcomer = Newcomer(tmp_path)
    newcomer.typed("pip install --quiet -r requirements.txt", where=ROOT)
    newcomer.typed(install, where=ROOT)
    (tmp_path / "files.py").write_text(FILES)
    newcomer.typed("python files.py")
    with newcomer.serving(serve):
        answer = newcomer.typed(curl)
        assert re.search(r'"name": ?"scores"', answer), answer
    newcomer.typed(mapping)
    (tmp_path / "count.py").write_text(COUNT)
    assert newcomer.typed("python count.py").startswith("True ")
