"""docs/kernels.md says what the backend x86 leaves to host; the backend says the same."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lite_core import ops
from lite_cpu.lowering.left_out import LEFT_OUT
from lite_cpu.lowering.registry import native_operators

SCRIPT = Path(__file__).parents[1] / "docs/list_operators.py"


@pytest.fixture(scope="module")
def lists() -> ModuleType:
    specification = importlib.util.spec_from_file_location("list_operators", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_operator_is_run_or_left_out_for_a_reason(lists: ModuleType) -> None:
    own = ("", "lite")  # a plugin, or another test of this process, may have added operators of its own
    opset = {lists.qualified(definition) for definition in ops.all_ops() if definition.domain in own}
    assert not native_operators() & set(LEFT_OUT)
    assert native_operators() | set(LEFT_OUT) == opset


def test_what_is_left_out_is_refused_with_that_reason(lists: ModuleType) -> None:
    for op, why in LEFT_OUT.items():
        assert lists.refusals()[op] == {f"there is no CPU kernel for {op}: {why}"}


def test_the_page_is_up_to_date(lists: ModuleType) -> None:
    text = lists.PAGE.read_text()
    assert lists.page(text) == text, f"run: python {SCRIPT.relative_to(SCRIPT.parents[1])}"


def test_the_kernel_on_the_page_runs(lists: ModuleType, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", lists.PAGE.read_text(), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    subprocess.run([sys.executable, str(script)], check=True, timeout=300)
