"""``lite cache fill``: a program that has only the filled cache, and cannot write to it, compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.plugins import available_backends
from lite_tools.writing import write_model

RUN = """
import sys
import numpy as np
import lite_core as lite
print(lite.load(sys.argv[1], "x86", fallback="never").run({"x": np.ones((2, 3), np.float32)})["y"].shape)
"""


@pytest.mark.full("cpu")
def test_program_with_a_filled_cache_compiles_nothing(tmp_path: Path) -> None:
    if isinstance(available_backends()["x86"].probe(), Unavailable):
        pytest.skip("the backend x86 has no device here")
    b = lite.GraphBuilder("network")
    b.output(b.add("Softmax", [b.add("Relu", [b.input("x", "float32", ["n", 3])])]), "y")
    model = tmp_path / "model.lite"
    write_model(model, b.build(), optimized=False)
    environment = {**os.environ, "LITE_CACHE_DIR": str(tmp_path / "cache"), "LITE_LOG": "debug"}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120, check=True
        )

    fill = ("-m", "lite_core", "cache", "fill", str(model), "-b", "x86", "-s", "2x3", "--json")
    filled = run(*fill)
    assert json.loads(filled.stdout)["models"][0]["new_entries"] > 0
    assert "lite.cpu.cache: compiled" in filled.stderr
    (tmp_path / "cache" / "kernels").chmod(0o500)
    program = run("-c", RUN, str(model))
    assert program.stdout == "(2, 3)\n"
    assert "lite.cpu.cache: compiled" not in program.stderr
    (tmp_path / "cache" / "kernels").chmod(0o700)
    assert json.loads(run(*fill).stdout)["models"][0]["new_entries"] == 0
