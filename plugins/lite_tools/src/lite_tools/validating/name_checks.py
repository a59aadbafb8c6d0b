"""Checks of the names that a package claims: well-formed, and not those of Lite or of other packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lite_core.builtin import HostBackend, NullBackend
from lite_core.passes import default_passes
from lite_core.plugins.known import known_distributions
from lite_tools.examining.inspection import HOOKS
from lite_tools.validating.findings import Finding

__all__ = ["name_findings"]

_WORD = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_DOMAIN = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_OPERATOR = re.compile(r"[A-Z][A-Za-z0-9_]*")
#: Domains with which ONNX's own operators and ONNX Runtime's are written in models.
_FOREIGN_DOMAINS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training", "com.microsoft")


def name_findings(rows: Iterable[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Check the names of a package's backends, formats, operators, passes and commands.

    Args:
        rows: the package's plugins, as :func:`lite_tools.examining.packages.plugin_rows` returns them.
        others: the plugins of other installed packages.
    """
    rivals = [(hook, name, row) for row in others for hook, names in row["provides"].items() for name in names]
    for row in rows:
        package = row["distribution"]
        for hook, names in row["provides"].items():
            for name in names:
                where = f"{HOOKS[hook]} {name!r}"
                if text := _malformed(hook, name):
                    yield Finding("error", "names", where, text, "rename it")
                if owner := _of_lite(hook, name, package):
                    yield Finding("error", "names", where, f"the name is that of {owner}", "rename it")
                for rival_hook, rival, other in rivals:
                    if (rival_hook, rival) == (hook, name):
                        label = f"{other['distribution']} {other['version']}"
                        text = f"{label}, which is installed here, has the name too, so that users could use neither"
                        if hook == "lite_passes":  # which need not differ
                            text = f"{label}, which is installed here, has the name too: `lite bisect` names both"
                        level: Any = "warning" if hook == "lite_passes" else "error"
                        yield Finding(level, "names", where, text, "rename it, or uninstall the other")
                if names.count(name) > 1:
                    yield Finding("error", "names", where, "the package provides it twice", "rename one")


def _malformed(hook: str, name: str) -> str:
    if hook == "lite_ops":
        domain, _, operator = name.rpartition(".")
        if domain in _FOREIGN_DOMAINS:
            return f"the domain {domain} is not the package's own"
        if not _DOMAIN.fullmatch(domain):
            return f"the domain {domain!r} must be of lower-case letters, digits, _ and dots"
        return "" if _OPERATOR.fullmatch(operator) else "an operator's name begins with a capital letter"
    if hook == "lite_backends" and name in ("auto", "never"):
        return f"{name!r} has another meaning there"
    return "" if _WORD.fullmatch(name) else "a name consists of lower-case letters and digits, with - or _ between them"


def _of_lite(hook: str, name: str, package: str) -> str:
    """Return what has a name in Lite; empty if nothing has, or the package is the one that brings it."""
    own = {
        "lite_backends": {backend.name: "lite-core" for backend in (HostBackend(), NullBackend())},
        "lite_formats": {"lite": "lite-core"},
        "lite_ops": {},
        "lite_passes": {pass_.name: "lite-core" for pass_ in default_passes()},
        "lite_commands": {},
    }[hook]
    known: dict[str, str] = {}
    if hook in ("lite_backends", "lite_formats", "lite_commands"):
        known = known_distributions(hook.removeprefix("lite_"))  # type: ignore[arg-type]
    owner = {**known, **own}.get(name, "")
    return "" if owner == package else owner
