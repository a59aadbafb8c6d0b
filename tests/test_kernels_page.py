"""What docs/kernels.md says of the backend x86 is what the backend does; test_generated_docs.py holds its lists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from list_operators import opset, refusals, without_kernel
from lite_cpu.lowering.registry import OPERATORS

PAGE = Path(__file__).parents[1] / "docs/kernels.md"


def test_every_operator_that_is_run_is_one_of_the_opset() -> None:
    assert OPERATORS.registered_operators() <= opset()


def test_what_has_no_kernel_is_refused_with_that_reason() -> None:
    left_out = without_kernel(OPERATORS)
    assert left_out
    for op in left_out:
        assert refusals()[op] == {f"there is no CPU kernel for {op}"}


def test_the_kernel_on_the_page_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    subprocess.run([sys.executable, str(script)], check=True, timeout=300)
