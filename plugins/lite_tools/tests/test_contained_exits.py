"""Plugins that end the process while a command runs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from installed_plugins import install, lite

from lite_core.builder import GraphBuilder
from lite_tools.writing import write_model

#: A plugin whose backend ends the process when it is asked for devices.
ENDS_IN_PROBE = """
import os
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Ending(KernelBackend):
    def probe(self):
        os._exit(3)

@hookimpl
def lite_backends():
    return [Ending("{name}")]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    b = GraphBuilder("small")
    b.output(b.add("Relu", [b.input("x", "float32", (2,))]), "y")
    write_model(tmp_path / "model.lite", b.build())
    return tmp_path / "model.lite"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("source", ["import os; os._exit(3)\n", ENDS_IN_PROBE], ids=["import", "probe"])
def test_a_command_goes_on_without_a_plugin_that_ends_the_process(source: str, site: Path, model: Path) -> None:
    install(site, "worse", source)
    ran = lite(site, "run", str(model))
    assert ran.returncode == 0, ran.stderr
    assert "lite-worse 1.0" in ran.stderr + ran.stdout
    assert "os._exit(3)" in ran.stderr + ran.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_children_and_other_threads_end_as_they_ask(site: Path, model: Path) -> None:
    install(
        site,
        "forks",
        "import os\nchild = os.fork()\nchild or os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\nraise ValueError('the child ended by 7')\n",
    )
    ran = lite(site, "run", str(model))
    assert ran.returncode == 0, ran.stderr
    assert "the child ended by 7" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of crashes")
def test_a_crash_shows_whose_code_it_was(site: Path, model: Path) -> None:
    install(site, "worse", "import os; os.kill(os.getpid(), 11)\n")
    ran = lite(site, "run", str(model), LITE_LOG="plugins")
    assert ran.returncode == -signal.SIGSEGV
    assert "lite_worse_plugin.py" in ran.stderr
