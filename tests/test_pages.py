"""The Python code and the commands that README and docs show work, on a small network under the names that they use.

Formats are recognised by content, so one ONNX file stands for ``inference.pdmodel`` and other names. The tutorial and
the pages about plugins, kernels, conformance and foreign runtimes have separate tests.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from tiers import in_part

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.plugins import available_backends
from lite_onnx.format import OnnxFormat
from lite_tools.cli import lite as command_group
from lite_tools.writing import write_model

ROOT = Path(__file__).parents[1]
SHAPE = (1, 3, 224, 224)
#: The pages, and the number of Python blocks at their beginning that can run as they are.
PAGES = {
    "README.md": 1,
    "core/README.md": 1,
    "docs/api.md": 1,
    "docs/converting.md": 1,
    "docs/index.md": 1,
    "docs/model-file.md": 1,
    "docs/onnx.md": 1,
    "docs/troubleshooting.md": 1,
    "plugins/lite_cpu/README.md": 1,
    "plugins/lite_x86/README.md": 1,
}
#: Commands of README's table that other tests run, because they need a network of Paddle's, a table or an empty folder,
#: or do not end by themselves.
ELSEWHERE = ("lite opt", "lite demo", "lite new-plugin", "lite serve", "lite map")


def network() -> lite.Graph:
    """Return a convolution with global pooling: input ``x`` float32[1, 3, 224, 224], output ``y`` float32[1, 4]."""
    b = lite.GraphBuilder("network")
    weights = b.constant(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32))
    image = b.add("Conv", [b.input("x", "float32", SHAPE), weights], {"strides": (4, 4)})
    b.output(b.add("Flatten", [b.add("GlobalAveragePool", [b.add("Relu", [image])])]), "y")
    return b.build()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    for name in ("inference.pdmodel", "model.pdmodel", "model.onnx", "MODEL"):
        OnnxFormat().write(network(), tmp_path / name)
    write_model(tmp_path / "model.lite", network())
    cv2.imwrite("picture.png", np.zeros((224, 224, 3), np.uint8))
    return tmp_path


def requires(*backends: str) -> None:
    """Skip the test if a backend has no device here."""
    for name in backends:
        found = available_backends()[name].probe()
        if isinstance(found, Unavailable):
            pytest.skip(f"{found.reason}. {found.remedy}")


def run(command: str) -> str:
    """Run a command line in this process; it must succeed."""
    program, *arguments = shlex.split(command)
    assert program == "lite"
    result = CliRunner().invoke(command_group, arguments, catch_exceptions=False)
    assert result.exit_code == 0, f"{command}\n{result.output}"
    return result.output


@pytest.mark.parametrize("page", PAGES)
def test_python_code_of_a_page(page: str, folder: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[: PAGES[page]]
    assert blocks
    requires(*(name for name in ("opencl", "x86") if f'"{name}"' in "".join(blocks)))
    for block in blocks:
        exec(block, {"image": np.zeros(SHAPE, np.float32), "graph": network()})


def test_commands_of_one_file_for_several_devices(folder: Path) -> None:
    requires("opencl", "x86")
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## One file for several devices")[2]
    commands = re.findall(r"^    (lite .*)$", text.partition("\n## ")[0], re.MULTILINE)
    shown = [run(command) for command in commands]
    assert len(shown) == 2
    assert re.search(r"^ran on opencl in [\d.]+ ms; loaded in [\d.]+ ms$", shown[1], re.MULTILINE)


FIRST = re.findall(
    r"^    (lite .*)$",
    (ROOT / "README.md").read_text(encoding="utf-8").partition("## Run a model")[2].partition("\n## ")[0],
    re.MULTILINE,
)


@pytest.mark.parametrize("command", in_part("packages", FIRST, [c for c in FIRST if not c.startswith("lite bench")]))
def test_command_that_readers_type_first(command: str, folder: Path) -> None:
    requires(*(name for name in ("x86",) if name in command))
    assert run(command)


def readme_commands() -> list[str]:
    """Return the first command of each row of README's table of commands."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## On the command line")[2]
    found = re.findall(r"^\| `(lite [^`]*)`", section.partition("\nEvery command")[0], re.MULTILINE)
    return [re.sub(r"\[(\w+)\]", "", command).strip() for command in found if not command.startswith(ELSEWHERE)]


#: Every command but `lite bench`, which measures for ten seconds, and `lite report`, which runs the model repeatedly.
QUICK = [command for command in readme_commands() if not command.startswith(("lite bench", "lite report"))]


@pytest.mark.parametrize("command", in_part("packages", readme_commands(), QUICK))
def test_command_of_the_readme(command: str, folder: Path) -> None:
    requires(*(name for name in ("opencl", "x86") if name in command))
    if "FILE" in command:
        requires("x86")
        lite.convert(network(), "FILE", "x86", verify=False)
    assert run(command)
