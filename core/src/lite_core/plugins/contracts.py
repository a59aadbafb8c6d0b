"""Required members of the objects that plugins provide, and texts about faults of plugins."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Literal

from lite_core import backend as contract
from lite_core.ops import OpDef

__all__ = ["Kind", "checked_items", "fault_text", "item_problem", "members", "missing_members"]

Kind = Literal["backend", "executable", "memory"]

_NEEDED: dict[Kind, type] = {"backend": contract.Backend, "executable": contract.Executable, "memory": contract.Memory}

#: Required members of the items of hooks; see the contracts named by HookSpecs.
_REQUIRED_OF_HOOKS = {
    "lite_formats": ("name", "suffixes", "sniff", "read"),
    "lite_ops": ("name", "domain", "reference", "infer"),
    "lite_passes": ("name", "__call__"),
    "lite_commands": ("name", "callback"),
}

#: Names of lite-core's own items; ``auto`` stands for all backends.
_TAKEN = {"lite_backends": ("auto", "host", "null"), "lite_formats": ("lite",)}


def fault_text(error: BaseException) -> str:
    """Return the type and message of an exception of a plugin. Raises a KeyboardInterrupt again: it is no fault."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    if unknown := re.match(r"unknown hook '(\w+)' in plugin", str(error)):  # pluggy's text
        import difflib  # not at the top: needed only for this message

        (meant,) = difflib.get_close_matches(unknown[1], ["lite_backends", *_REQUIRED_OF_HOOKS], 1, 0)
        return f"{unknown[1]} is marked with @hookimpl, but Lite has no such hook; did you mean {meant}?"
    return f"{type(error).__name__}: {error}"


def checked_items(hook: str, result: Any) -> list[tuple[Any, str]]:
    """Return the items that a hook returned, each with the reason why it cannot be used; empty if it can."""
    if result is None or isinstance(result, str):
        text = f"the text {result!r}, expected a list" + " of OpDef" * (hook == "lite_ops")
        return [(result, f"{hook} returned {text if result is not None else 'None, not a list; return [] for none'}")]
    return [(item, item_problem(hook, item)) for item in result]


def item_problem(hook: str, item: Any) -> str:
    """Return the reason why an item of a hook cannot be used; empty if it can."""
    required = members(_NEEDED["backend"]) if hook == "lite_backends" else _REQUIRED_OF_HOOKS[hook]
    if missing := [name for name in required if not hasattr(item, name)]:
        return f"{item!r} lacks {', '.join(missing)}"
    if not isinstance(item.name, str):
        return f"the name of {item!r} is not a string"
    if item.name in _TAKEN.get(hook, ()):
        return f"the {hook[5:-1]} name {item.name!r} is taken by lite-core itself"
    if hook == "lite_backends" and not re.fullmatch(r"[^\s,:=]+", item.name):
        return f"the backend name {item.name!r} is empty, or contains a space or one of , : ="
    if hook == "lite_formats" and not (callable(item.read) and all(isinstance(s, str) for s in item.suffixes)):
        return f"format {item.name!r} must have a method read, and suffixes that are strings"
    if hook == "lite_ops" and not (isinstance(item, OpDef) and str(item.domain) == item.domain not in ("", "lite")):
        return f"{type(item).__name__} {item.name!r} (domain {item.domain!r}) must be an OpDef in a plugin's own domain"
    return ""


def missing_members(instance: object, kind: Kind) -> list[str]:
    """Return the names of required members of the contract that an object lacks."""
    return [name for name in members(_NEEDED[kind]) if not hasattr(instance, name)]


@functools.cache
def members(protocol: type) -> tuple[str, ...]:
    """Return the names of the members that a Protocol declares: attributes, then methods, in order of declaration."""
    declared = [*inspect.get_annotations(protocol), *vars(protocol)]
    return tuple(dict.fromkeys(name for name in declared if not name.startswith("_")))
