"""Writes the lists in docs/kernels.md: what the backend ``x86`` leaves to ``host``, and why.

``python docs/list_operators.py``, with the test environment. A test compares the page with what the backend says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from lite_conformance.cases.op_cases import all_tables
from lite_core import ops
from lite_cpu.lowering.left_out import LEFT_OUT
from lite_cpu.lowering.registry import refusal

PAGE = Path(__file__).with_name("kernels.md")


def left_out() -> str:
    """A table of the operators that x86 has no kernel for, by reason."""
    operators: dict[str, list[str]] = {}
    for op, why in LEFT_OUT.items():
        operators.setdefault(why, []).append(op)
    return _table(("operators", "why"), ((_code(sorted(names)), why) for why, names in operators.items()))


def limits() -> str:
    """A table of what x86 refuses of the operators that it has kernels for; of similar reasons only one."""
    operators: dict[str, set[str]] = {}
    examples: dict[str, str] = {}
    for op, reasons in refusals().items():
        for reason in sorted(reasons) if op not in LEFT_OUT else ():
            text = re.sub(r"\bu?int(8|16|32|64)\b", "integers", reason.removeprefix(f"{op} "))
            kind = re.sub(r"'[^']*'|\bp=\d+", "...", text)
            operators.setdefault(kind, set()).add(op)
            examples.setdefault(kind, text)
    rows = ((_code(sorted(names)), examples[kind]) for kind, names in operators.items())
    return _table(("operators", "left to `host`, for example"), sorted(rows, key=lambda row: (row[1], row[0])))


@cache
def refusals() -> Mapping[str, set[str]]:
    """For each operator of the opset the reasons with which every x86 refuses cases of the conformance suite."""
    reasons: dict[str, set[str]] = {qualified(definition): set() for definition in ops.all_ops()}
    for table in all_tables():
        for _, dtype, case in table.cases():
            (node,) = case.build(dtype, 0)[0].nodes
            reason = refusal(node)
            if reason is not None:
                reasons[node.qualified_op].add(reason)
    return reasons


def qualified(definition: ops.OpDef) -> str:
    """The name of an operator with its domain."""
    return f"{definition.domain}.{definition.name}" if definition.domain else definition.name


def page(text: str) -> str:
    """The page with its lists as they should be."""
    for name, table in (("left out", left_out()), ("limits", limits())):
        begin, end = f"<!-- {name}: made by list_operators.py -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table}{end}{rest.split(end)[1]}"
    return text


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
