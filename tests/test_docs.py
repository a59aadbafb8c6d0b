"""The code in the documentation runs, and the targets of its links exist."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from observers import Recorder

import lite_core as lite
from lite_core.backend import Buffer, Partition
from lite_core.memory import HostMemory
from lite_core.plugins import PluginManager

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *ROOT.glob("*/*/README.md"),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_plugin_of_the_tutorial() -> None:
    code, _ = blocks(ROOT / "docs/writing-a-plugin.md", "python")
    module = ModuleType("lite_toy_plugin")
    exec(code, module.__dict__)
    plugins = PluginManager(list)
    assert not plugins.register(module, "toy").failed
    b = lite.GraphBuilder("softmax of relu")
    b.output(b.add("Softmax", [b.add("Relu", [b.input("x", "float32", ["n", 3])])]), "y")
    session = lite.load(b.build(), backend="toy", fallback="never", plugins=plugins)
    y = session.run(x=[[-1.0, 0.0, 2.0]])["y"]
    e = np.exp([0.0, 0.0, 2.0])
    np.testing.assert_allclose(y[0], e / e.sum(), rtol=1e-6)


def test_the_observable_executable_of_the_tutorial() -> None:
    _, code = blocks(ROOT / "docs/writing-a-plugin.md", "python")
    module = ModuleType("lite_toy_executable")
    exec(code, module.__dict__)
    b = lite.GraphBuilder("observed")
    b.output(b.add("Neg", [b.add("Relu", [b.input("x", "float32", (3,))], name="first")], name="last"), "y")
    graph, memory = b.build(), HostMemory()
    (relu,) = graph.nodes[0].outputs
    assert relu is not None
    executable, observer = module.ToyExecutable(Partition("part", graph)), Recorder({relu.name: np.ones(3, np.float32)})
    inputs = [Buffer(graph.inputs[0].type, memory, np.array([-1, 0, 2], np.float32))]
    outputs = [Buffer(graph.outputs[0].type, memory)]
    executable.run(inputs, outputs, None)
    assert outputs[0].data.tolist() == [0, 0, -2]
    executable.run_observed(inputs, outputs, None, observer)
    assert observer.started == [("numpy", ["first"]), ("numpy", ["last"])]
    assert observer.values[relu.name].tolist() == [0, 0, 2]
    assert outputs[0].data.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_every_command_is_in_the_readme() -> None:
    from lite_tools.cli import lite as group

    names = set(group.list_commands(None))  # type: ignore[arg-type]
    documented = set(re.findall(r"`lite ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert names <= documented


def test_exit_codes_in_the_readme() -> None:
    from lite_tools.commands import exit_codes

    (listed,) = re.findall(r"Exit codes: (.*?)\.\n", (ROOT / "README.md").read_text(), re.DOTALL)
    codes = [exit_codes.EXIT_OK, exit_codes.EXIT_FAILURE, exit_codes.EXIT_USAGE, exit_codes.EXIT_UNAVAILABLE]
    codes += [exit_codes.EXIT_NOTHING, exit_codes.EXIT_CRASH, exit_codes.EXIT_FILE]
    assert codes == [int(code) for code in re.findall(r"\d+", listed)]
