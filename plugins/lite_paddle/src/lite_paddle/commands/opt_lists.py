"""The lists of operators that ``lite opt`` prints, in Paddle's names, for the chosen targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lite_core.errors import UnsupportedOperatorError
from lite_tools.commands import console, print_json, table

from ..operator_table import NO, operator_table
from ..paddle_lite.kernels import all_kernels
from ..paddle_lite.placing import Targets, parse_targets
from ..paddle_lite.writing import paddle_lite_program
from ..reader import read

__all__ = ["print_model_operators", "print_names", "print_operators"]


def print_operators(
    names: Sequence[str], backends: Sequence[str], *, markdown: bool, supported_only: bool, as_json: bool
) -> None:
    """Print a table: each operator of Paddle-Lite, its kernels for the targets, and where Lite runs it.

    Args:
        names: values of ``--valid_targets``.
        backends: Lite's backends for them.
        markdown: print a Markdown table.
        supported_only: leave out operators that Paddle-Lite has no kernel for on these targets.
        as_json: print JSON.
    """
    targets = parse_targets(names)
    marks = _marks(backends)
    rows = [(name, _kernels(name, targets), *_in_lite(name, marks, backends)) for name in sorted(all_kernels())]
    if supported_only:
        rows = [row for row in rows if row[1] != NO]
    heads = ("operator", f"Paddle-Lite 2.13 on {','.join(names)}", *(f"Lite on {backend}" for backend in backends))
    if as_json:
        found = [{"name": n, "paddle_lite": k, "lite": dict(zip(backends, runs))} for n, k, *runs in rows]
        print_json({"targets": list(names), "operators": found})
    elif markdown:
        lines = [f"| {' | '.join([f'`{name}`', *others])} |" for name, *others in rows]
        rule = f"|{' --- |' * len(heads)}"
        console.print("\n".join([f"| {' | '.join(heads)} |", rule, *lines]), markup=False)
    else:
        table(heads, rows)
        have, runs = sum(row[1] != NO for row in rows), sum(row[2] != NO for row in rows)
        console.print(
            f"\n{len(rows)} operators: Paddle-Lite has kernels for {have} of them on these targets, and Lite runs "
            f"{runs}. To ask about a model: lite opt --print_model_ops=true --model_dir DIR",
            markup=False,
        )


def print_names(names: Sequence[str], *, as_json: bool) -> None:
    """Print only the names of the operators that Paddle-Lite has kernels for on the targets."""
    targets = parse_targets(names)
    found = [name for name in sorted(all_kernels()) if _kernels(name, targets) != NO]
    if as_json:
        print_json({"targets": list(names), "operators": found})
    else:
        console.print("\n".join(f" - {name}" for name in found), markup=False)


def print_model_operators(
    model: str, params: str | None, names: Sequence[str], backends: Sequence[str], *, as_json: bool
) -> bool:
    """Print the operators of a model: how many there are, and what keeps each from a file for Paddle-Lite.

    Args:
        model: path of a Paddle model.
        params: path of its parameters, if they are not beside it.
        names: values of ``--valid_targets``.
        backends: Lite's backends for them.
        as_json: print JSON.

    Returns:
        True if Paddle-Lite can run the model on the targets.
    """
    targets = parse_targets(names)
    source = read(model, params)
    problems: dict[str, str] = {}
    try:
        paddle_lite_program(source, targets)
    except UnsupportedOperatorError as error:
        problems = {problem.op: problem.reason for problem in error.problems}
    counts = Counter(op.type for op in source.block.walk())
    # A rewriting may have led to an operator that the model does not have.
    operators = [*counts, *(name for name in problems if name not in counts)]
    marks = _marks(backends)
    rows = [(name, counts[name], problems.get(name, "yes"), *_in_lite(name, marks, backends)) for name in operators]
    if as_json:
        found = [
            {"name": n, "number": count, "paddle_lite": k, "lite": dict(zip(backends, runs))}
            for n, count, k, *runs in rows
        ]
        print_json({"model": model, "ok": not problems, "targets": list(names), "operators": found})
        return not problems
    heads = (f"Paddle-Lite 2.13 on {','.join(names)}", *(f"Lite on {backend}" for backend in backends))
    table(("operator", "number", *heads), rows)
    verdict = f"cannot run it: {', '.join(problems)}" if problems else "can run it"
    console.print(f"\n{model}: {len(counts)} kinds of operators; Paddle-Lite {verdict}", markup=False)
    return not problems


def _kernels(operator: str, targets: Targets) -> str:
    """Return the processors whose kernels a file for the targets can name, :data:`NO` if there are none."""
    found = {kernel.target for kernel in all_kernels()[operator] if kernel.target in targets}
    return ", ".join(target.name.lower() for target in sorted(found, reverse=True)) or NO


def _marks(backends: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return operator -> backend -> native, host or no."""
    return {row.name: row.backends for row in operator_table(list(backends))}


def _in_lite(operator: str, marks: dict[str, dict[str, str]], backends: Sequence[str]) -> tuple[str, ...]:
    """Return where Lite runs an operator, for each backend; those that are not installed have a dash."""
    # The reader makes an operator "if" of Paddle's conditional blocks.
    found = marks.get("conditional_block" if operator == "if" else operator, {})
    return tuple(found.get(backend, "-" if found else NO) for backend in backends)
