"""What the things that plugins give must have and may have, and members that look like a misspelt optional one."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Literal

from lite_core import backend as contract

__all__ = ["Kind", "missing_members", "misspelt_members", "required_of_hook"]

Kind = Literal["backend", "executable", "memory"]

_REQUIRED: dict[Kind, type] = {
    "backend": contract.Backend,
    "executable": contract.Executable,
    "memory": contract.Memory,
}
_OPTIONAL: dict[Kind, tuple[type, ...]] = {
    "backend": (
        contract.DescribesTarget,
        contract.MeasuresSpeed,
        contract.ProvidesMemory,
        contract.ReportsFindings,
        contract.RestoresState,
        contract.StatesCompatibility,
        contract.TakesOptions,
    ),
    "executable": (
        contract.HasNotes,
        contract.ListsConstantsRead,
        contract.ProfilesKernels,
        contract.ReportsMemoryUse,
        contract.SavesState,
    ),
    "memory": (contract.SharesHostMemory, contract.ViewsMemory),
}

#: What each item that a hook gives must have; see the contracts that HookSpecs names.
_OF_HOOKS = {
    "lite_formats": ("name", "suffixes", "sniff", "read"),
    "lite_ops": ("name", "domain", "reference", "infer"),
    "lite_passes": ("name", "__call__"),
    "lite_commands": ("name", "callback"),
}

#: How much alike two names are, 0 to 1, from which on one is taken for the other: ``restor`` and ``restore`` are 0.92.
_ALIKE = 0.85


def required_of_hook(hook: str) -> tuple[str, ...]:
    """Names of the members that an item of a hook must have."""
    return _members(_REQUIRED["backend"]) if hook == "lite_backends" else _OF_HOOKS[hook]


def missing_members(thing: object, kind: Kind) -> list[str]:
    """Names of required members of the contract that a thing lacks."""
    return [name for name in _members(_REQUIRED[kind]) if not hasattr(thing, name)]


def misspelt_members(thing: object, kind: Kind) -> list[tuple[str, str]]:
    """Public members of a thing that look like a misspelt optional member of the contract, which it lacks.

    Without a warning, an optional part under another name would simply never be used.

    Args:
        thing: what is looked at, or its class.
        kind: which contract it implements.

    Returns:
        Pairs of the name that is there and the name in the contract. Members of a class that names the Protocol among
        its bases are checked by mypy, too.
    """
    made_by: type[Any] = thing if isinstance(thing, type) else type(thing)
    own = set() if made_by is thing else {name for name in getattr(thing, "__dict__", ()) if not name.startswith("_")}
    present = own | {name for name in dir(made_by) if not name.startswith("_")}
    known = {name for part in (_REQUIRED[kind], *_OPTIONAL[kind]) for name in _members(part)}
    lacking = [name for part in _OPTIONAL[kind] for name in _members(part) if name not in present]
    return sorted((name, meant) for name in present - known for meant in lacking if _is_alike(name, meant))


def _is_alike(name: str, meant: str) -> bool:
    import difflib  # not at the top: only a process that has plugins needs it

    ours, theirs = name.replace("_", "").lower(), meant.replace("_", "").lower()
    # Letters that have changed places make words less alike than letters that are missing.
    return sorted(ours) == sorted(theirs) or difflib.SequenceMatcher(None, ours, theirs).ratio() >= _ALIKE


@functools.cache
def _members(protocol: type) -> tuple[str, ...]:
    """Names of the members that a Protocol declares: attributes, then methods, in their order."""
    declared = [*inspect.get_annotations(protocol), *vars(protocol)]
    return tuple(dict.fromkeys(name for name in declared if not name.startswith("_")))
