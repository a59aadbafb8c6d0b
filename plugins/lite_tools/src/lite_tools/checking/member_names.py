"""Detection of misspelt optional members of backends, executables and memory spaces.

Without it, an optional part with a misspelt name would silently never be used.
"""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from lite_core import backend as contract
from lite_core.plugins.contracts import Kind, members
from lite_core.reports import StatesPrecision
from lite_core.saved_kernels import SavesKernels
from lite_core.stack import DescribesStack

__all__ = ["PARTS", "misspelt_members", "undefined_members"]

#: The Protocols of each kind of object; the first has the required members.
PARTS: dict[Kind, tuple[type, ...]] = {
    "backend": (
        contract.Backend,
        contract.DescribesTarget,
        contract.MeasuresSpeed,
        contract.ProvidesMemory,
        contract.ReportsFindings,
        contract.RestoresState,
        contract.StatesCompatibility,
        contract.TakesOptions,
        DescribesStack,
        SavesKernels,
    ),
    "executable": (
        contract.Executable,
        contract.HasNotes,
        contract.ListsConstantsRead,
        contract.ProfilesKernels,
        contract.ReportsMemoryUse,
        contract.SavesState,
        StatesPrecision,
    ),
    "memory": (contract.Memory, contract.SharesHostMemory, contract.ViewsMemory),
}

#: Similarity of names, 0 to 1, from which one counts as a misspelling: ``restor`` and ``restore`` have 0.92.
_SIMILARITY = 0.85


def misspelt_members(checked: object, kind: Kind) -> list[tuple[str, str]]:
    """Return the public members of an object that look like a misspelt optional member of the contract.

    Args:
        checked: an object, or its class.
        kind: the contract that it implements.

    Returns:
        Pairs of the object's name and the name in the contract. A body that a class inherits from a Protocol among its
        bases counts as lacking.
    """
    present = _present(checked) - set(undefined_members(checked, kind))
    known = {name for part in PARTS[kind] for name in members(part)}
    lacking = [name for part in PARTS[kind][1:] for name in members(part) if name not in present]
    return sorted((name, meant) for name in present - known for meant in lacking if _is_similar(name, meant))


def undefined_members(checked: object, kind: Kind) -> list[str]:
    """Return the members of the contract whose bodies are those of a Protocol, which do nothing and return None.

    A class inherits them if it lists a Protocol among its bases and does not define its members.

    Args:
        checked: an object, or its class.
        kind: the contract that it implements.
    """
    bodies = [(name, vars(part)[name]) for part in PARTS[kind] for name in members(part) if name in vars(part)]
    return sorted({name for name, body in bodies if inspect.getattr_static(checked, name, None) is body})


def _present(checked: object) -> set[str]:
    """Return the names of the public members of an object or a class."""
    cls: type[Any] = checked if isinstance(checked, type) else type(checked)
    own = () if cls is checked else getattr(checked, "__dict__", ())
    return {name for name in (*own, *dir(cls)) if not name.startswith("_")}


def _is_similar(name: str, meant: str) -> bool:
    ours, theirs = name.replace("_", "").lower(), meant.replace("_", "").lower()
    # SequenceMatcher rates swapped letters lower than missing ones.
    return sorted(ours) == sorted(theirs) or difflib.SequenceMatcher(None, ours, theirs).ratio() >= _SIMILARITY
