"""The identity of a run: what must be the same, so that its records and those of a later run make one report."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lite_conformance.cases.case import Case, Settings
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.selection import Selection

__all__ = ["code_digest", "differences", "digest_of_module", "identity_of"]

#: Keys of an identity whose values say nothing to a reader.
_DIGESTS = ("the backend's code", "the suite's code", "the list of cases", "expectations")
_CODE_SUFFIXES = (".py", ".toml", ".so", ".pyd", ".dll", ".dylib")


def identity_of(
    settings: Settings,
    selection: Selection,
    header: Mapping[str, Any],
    expectations: Expectations,
    chosen: Iterable[Case],
) -> dict[str, Any]:
    """Return the identity of a run, as JSON values.

    Args:
        settings: settings of the run.
        selection: the selection of its cases.
        header: the header that the worker sent.
        expectations: the expectations of the backend's package.
        chosen: the selected cases.
    """
    given = {key: value for key, value in asdict(settings).items() if key not in ("backend", "expectations")}
    names = "\n".join(case.name for case in chosen)
    entries = [asdict(entry) for entry in expectations.entries]
    return {
        "backend": settings.backend,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in given.items()},
        "selection": selection.describe(),
        "device": f"{header['device']}: {header['device_name']}",
        "versions": header["versions"],
        "suite": header.get("suite", {}),
        "stack": header.get("stack", {}),
        "platform": header["platform"],
        "the backend's code": header.get("code", ""),
        "the suite's code": code_digest(Path(__file__).parents[1]),
        "the list of cases": hashlib.sha256(names.encode()).hexdigest()[:16],
        "expectations": hashlib.sha256(repr(entries).encode()).hexdigest()[:16],
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two identities as texts: ``seed (0 before, 7 now)``."""
    found = []
    for key in dict.fromkeys([*before, *now]):
        one, other = before.get(key), now.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{key}: {text}" for text in differences(one, other)]
        elif one != other and key in _DIGESTS:
            found.append(f"{key} (changed)")
        elif one != other:
            found.append(f"{key} ({_shown(one)} before, {_shown(other)} now)")
    return found


def code_digest(place: Path) -> str:
    """Return a digest of a file, or of all code in a folder; empty if it cannot be read."""
    digest = hashlib.sha256()
    files = [place] if place.is_file() else sorted(f for f in place.rglob("*") if f.suffix in _CODE_SUFFIXES)
    try:
        for file in files:
            digest.update(str(file.relative_to(place.parent)).encode())
            digest.update(file.read_bytes())
    except OSError:
        return ""
    return digest.hexdigest()[:16]


def digest_of_module(module: str, file: str | None) -> str:
    """Return a digest of the code of a backend: of its file, or of the whole package that its module is in."""
    if "." not in module and file is not None and Path(file).name != "__init__.py":
        return code_digest(Path(file))
    found = importlib.util.find_spec(module.partition(".")[0])
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    return code_digest(Path(folders[0])) if folders else ""


def _shown(value: Any) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    if isinstance(value, list):
        return " ".join(map(str, value[:5])) + (" ..." if len(value) > 5 else "")
    return str(value)
