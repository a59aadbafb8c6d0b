"""Required and optional members of the objects that plugins provide, and detection of misspelt optional members."""

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

#: Required members of the items of hooks; see the contracts named by HookSpecs.
_REQUIRED_OF_HOOKS = {
    "lite_formats": ("name", "suffixes", "sniff", "read"),
    "lite_ops": ("name", "domain", "reference", "infer"),
    "lite_passes": ("name", "__call__"),
    "lite_commands": ("name", "callback"),
}

#: Similarity of names, 0 to 1, from which one counts as a misspelling: ``restor`` and ``restore`` have 0.92.
_SIMILARITY = 0.85


def required_of_hook(hook: str) -> tuple[str, ...]:
    """Return the names of the members that an item of a hook must have."""
    return _members(_REQUIRED["backend"]) if hook == "lite_backends" else _REQUIRED_OF_HOOKS[hook]


def missing_members(instance: object, kind: Kind) -> list[str]:
    """Return the names of required members of the contract that an object lacks."""
    return [name for name in _members(_REQUIRED[kind]) if not hasattr(instance, name)]


def misspelt_members(checked: object, kind: Kind) -> list[tuple[str, str]]:
    """Return the public members of an object that look like a misspelt optional member of the contract.

    Without a warning, an optional part with a misspelt name would silently never be used.

    Args:
        checked: an object, or its class.
        kind: the contract that it implements.

    Returns:
        Pairs of the object's name and the name in the contract. If a class lists the Protocol among its bases, mypy
        checks its members, too.
    """
    cls: type[Any] = checked if isinstance(checked, type) else type(checked)
    own = set() if cls is checked else {name for name in getattr(checked, "__dict__", ()) if not name.startswith("_")}
    present = own | {name for name in dir(cls) if not name.startswith("_")}
    known = {name for part in (_REQUIRED[kind], *_OPTIONAL[kind]) for name in _members(part)}
    lacking = [name for part in _OPTIONAL[kind] for name in _members(part) if name not in present]
    return sorted((name, meant) for name in present - known for meant in lacking if _is_similar(name, meant))


def _is_similar(name: str, meant: str) -> bool:
    import difflib  # not at the top: only a process that has plugins needs it

    ours, theirs = name.replace("_", "").lower(), meant.replace("_", "").lower()
    # SequenceMatcher rates swapped letters lower than missing ones.
    return sorted(ours) == sorted(theirs) or difflib.SequenceMatcher(None, ours, theirs).ratio() >= _SIMILARITY


@functools.cache
def _members(protocol: type) -> tuple[str, ...]:
    """Return the names of the members that a Protocol declares: attributes, then methods, in order of declaration."""
    declared = [*inspect.get_annotations(protocol), *vars(protocol)]
    return tuple(dict.fromkeys(name for name in declared if not name.startswith("_")))
