"""The page docs/kernels.md agrees with the backend x86; test_generated_docs.py checks its lists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from list_operators import opset, refusals, without_kernel
from lite_cpu.lowering.registry import OPERATORS

PAGE = Path(__file__).parents[1] / "docs/kernels.md"


#: Operators of strings, which the conformance suite has no cases of and backends are not asked about.
OF_STRINGS = {
    "RegexFullMatch",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "lite.StringPosition",
    "lite.Strings",
}


def test_registered_operators_are_in_the_opset() -> None:
    own = {op for op in OPERATORS.registered_operators() if op.startswith("lite_cpu.")}  # made of others by rewriting
    assert OPERATORS.registered_operators() - own <= opset()


def test_operators_without_kernel_are_refused() -> None:
    refused = without_kernel(OPERATORS)
    assert set(refused) >= OF_STRINGS
    for op in set(refused) - OF_STRINGS:
        (reason,) = refusals()[op]
        assert op in reason


def test_the_kernel_on_the_page_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    subprocess.run([sys.executable, str(script)], check=True, timeout=300)
