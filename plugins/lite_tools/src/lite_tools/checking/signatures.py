"""Detection of functions of plugins that cannot be called as Lite calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from lite_core.formats.contract import Format, WritesModels
from lite_core.ops import OpDef
from lite_core.passes import Pass
from lite_core.plugins.contracts import Kind
from lite_tools.checking.member_names import PARTS

__all__ = ["wrong_signatures"]

_FORMAT, _PASS = (Format, WritesModels), (Pass,)


def wrong_signatures(checked: object, kind: Kind | str) -> list[str]:
    """Return a sentence for each method of an object that cannot be called with the arguments that Lite passes.

    Args:
        checked: the object.
        kind: ``backend``, ``executable``, ``memory``, ``format``, ``pass`` or ``operator``.
    """
    if isinstance(checked, OpDef):
        return list(_of_operator(checked))
    known: dict[str, tuple[type, ...]] = {**{str(k): p for k, p in PARTS.items()}, "format": _FORMAT, "pass": _PASS}
    parts = known[kind]
    return [problem for part in parts for problem in _of_part(checked, part)]


def _of_part(checked: object, part: type) -> Iterator[str]:
    for name, declared in vars(part).items():
        is_method = inspect.isfunction(declared) and (name == "__call__" or not name.startswith("_"))
        found = getattr(checked, name, None) if is_method else None
        if found is None:
            continue
        wanted = [p for p in inspect.signature(declared).parameters.values() if p.name != "self"]
        positional = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        keywords = [p.name for p in wanted if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        if not callable(found):
            yield f"{name} is {type(found).__name__}, not a method"
        elif problem := _cannot_take(found, positional, keywords):
            yield f"{name}() is called with ({', '.join([*positional, *(f'{k}=' for k in keywords)])}): {problem}"


def _of_operator(definition: OpDef) -> Iterator[str]:
    inputs = [p.name for p in definition.inputs]
    keywords = [*definition.attributes, *definition.extra_keywords]
    if problem := _cannot_take(definition.reference, inputs, keywords):
        given = ", ".join([*inputs, *(f"{k}=" for k in keywords)])
        yield f"its reference is called with ({given}): {problem}"
    if problem := _cannot_take(definition.infer, ["inference"], []):
        yield f"its infer is called with (inference): {problem}"


def _cannot_take(function: Callable[..., Any], positional: list[str], keywords: list[str]) -> str:
    """Return why a function cannot be called with arguments of these names; empty if it can, or cannot be inspected."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C
        return ""
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{error}; it is declared as {signature}"
    return ""
