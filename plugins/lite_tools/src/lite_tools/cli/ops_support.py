"""``lite ops --backend``: the element types in which a backend runs each operator, and why not in others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.ir import DType
from lite_core.plugins import default_plugins
from lite_tools.commands.backend_names import known_backends
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.printing import console, print_json, table
from lite_tools.commands.progress import set_progress
from lite_tools.conversion.targets import Target, find_targets
from lite_tools.examining.operator_nodes import TypeSupport, operator_nodes, support_of

__all__ = ["print_support", "support"]

#: The columns of the list, each with the element types that it names by their bits; bf is bfloat16.
_COLUMNS = {
    "float": {"float64": "64", "float32": "32", "float16": "16", "bfloat16": "bf"},
    "int": {"int64": "64", "int32": "32", "int16": "16", "int8": "8"},
    "uint": {"uint64": "64", "uint32": "32", "uint16": "16", "uint8": "8"},
    "bool": {"bool": "yes"},
}
_LEGEND = "float, int, uint: the bits of the types; bf is bfloat16; -- is refused, an empty place is no type of it."
_ABOUT = "Asked about one ordinary node of each operator and type; about those of a model: lite check MODEL"


def support(backend: str) -> tuple[Target, dict[str, list[TypeSupport]]]:
    """Ask a backend about each operator in each element type.

    Returns:
        the backend, with the device that was asked, and the answers by the operator's qualified name.

    Raises:
        UnavailableError: there is no such backend, or it has and describes no device.
    """
    targets, problems = find_targets(known_backends(backend), default_plugins())
    if problems:
        raise UnavailableError(problems[0], "lite backends")
    (target,) = targets
    if target.candidate is None:
        raise UnavailableError(f"{backend} cannot be asked: {target.absent}", "lite backends")
    set_progress(f"asking {backend} about every operator")
    found: dict[str, list[TypeSupport]] = {}
    for answer in support_of(target.candidate, operator_nodes()):
        found.setdefault(answer.operator, []).append(answer)
    return target, found


def print_support(backend: str, names: Sequence[str] | None, as_json: bool) -> None:
    """Print in which element types a backend runs operators.

    Args:
        backend: the backend's name.
        names: qualified names of operators; None for all.
        as_json: print JSON.

    Raises:
        UnavailableError: there is no such backend, it has no device, or the types of an operator are not recorded.
    """
    target, found = support(backend)
    if names is not None:
        unknown = [name for name in names if name not in found]
        if unknown:
            problem = f"{backend} was not asked about {', '.join(unknown)}: operators of plugins and of strings"
            remedy = f"`lite check MODEL --backend {backend}` asks about those of a model"
            raise UnavailableError(f"{problem} depend on the model; {remedy}", f"lite ops --backend {backend}")
        found = {name: found[name] for name in names}
    if as_json:
        print_json(_as_dict(target, found))
        return
    device = target.candidate.device if target.candidate is not None else None
    absent = f" (not on this machine: {target.absent})" if target.absent else ""
    console.print(f"{target.plugin}: {device.name if device else ''}{absent}\n", markup=False)
    if names is not None:
        for name, answers in found.items():
            table(("operator", "type", "runs", "reason"), [_row(name, answer) for answer in answers])
    else:
        refused = {name: answers for name, answers in found.items() if all(answer.reason for answer in answers)}
        table(
            ("operator", *_COLUMNS),
            [_summary(name, answers) for name, answers in found.items() if name not in refused],
        )
        console.print(_LEGEND)
        if refused:
            console.print(f"\n{backend} refuses in every type:")
            table(("operator", "reason"), [(name, answers[0].reason) for name, answers in refused.items()])
        every = sum(not any(answer.reason for answer in answers) for answers in found.values())
        some = len(found) - len(refused)
        console.print(f"\n{some} of {len(found)} operators run on {backend}, {every} of them in every type.")
    console.print(_ABOUT, markup=False)
    if names is None:
        console.print(f"next: lite ops NAME --backend {backend}", markup=False)


def _row(name: str, answer: TypeSupport) -> tuple[str, str, str, str]:
    return name, answer.dtype, "no" if answer.reason else "yes", answer.reason


def _summary(name: str, answers: Sequence[TypeSupport]) -> tuple[str, ...]:
    """Return the row of an operator: for each column, the types that run and -- for those that do not."""
    runs = {answer.dtype: not answer.reason for answer in answers}

    def cell(types: Mapping[str, str]) -> str:
        marks = [(text if runs[dtype] else "--") if dtype in runs else "" for dtype, text in types.items()]
        return " ".join(mark.ljust(2) for mark in marks).rstrip()

    return name, *(cell(types) for types in _COLUMNS.values())


def _as_dict(target: Target, found: dict[str, list[TypeSupport]]) -> dict[str, Any]:
    device = target.candidate.device if target.candidate is not None else None
    return {
        "backend": target.name,
        "plugin": target.plugin,
        "device": device.name if device is not None else "",
        "absent": target.absent,
        "types": [dtype.value for dtype in DType if any(a.dtype == dtype.value for row in found.values() for a in row)],
        "operators": [
            {
                "operator": name,
                "runs_in": [answer.dtype for answer in answers if not answer.reason],
                "refused": {answer.dtype: answer.reason for answer in answers if answer.reason},
            }
            for name, answers in found.items()
        ],
    }
