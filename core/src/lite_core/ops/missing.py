"""Why the opset has no operator of a name: its package is not installed, it is in another domain, or is misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.ops.lookup import all_ops, find
from lite_core.ops.registry import OpDef, providers

__all__ = [
    "Missing",
    "check_operators",
    "left_out",
    "note_packages",
    "packages",
    "plugin_name",
    "suspects",
    "why_missing",
]

#: Operators of plugins that the opset does not have, by their qualified names, with the reason.
left_out: dict[str, str] = {}

#: Failures of plugins that may be why an operator is missing, each as a sentence, with the distribution.
suspects: list[tuple[str, str]] = []

#: By domain, the distribution that provides its operators, and its version, as model files that were read say.
_noted: dict[str, tuple[str, str]] = {}

# A file must not be able to put anything else into a command that users copy.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*|-")
_SIMILARITY = 0.75  # of a misspelt name, 0 to 1: Sqish and Squish have 0.91


class Missing(NamedTuple):
    """The reason why the opset lacks an operator, and what to do."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


def note_packages(document: Any) -> None:
    """Note the packages of operators that a model file states: ``{"acme": ["lite-acme", "0.1.0"]}``.

    Raises:
        AttributeError, TypeError, ValueError: the document is not of this form, or a name is not that of a package.
    """
    for domain, (package, version) in document.items():
        if not (_NAME.fullmatch(package) and _VERSION.fullmatch(version)):
            raise ValueError(f"the package of operators {[package, version]!r:.200} is not a name and a version")
        _noted[str(domain)] = package, version


def packages(domains: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the packages of the operators in some domains, by domain, as far as known; see :func:`note_packages`."""
    known = _noted | providers
    found = {domain: known[domain] for domain in sorted(domains) if domain in known}
    # A program that registers a plugin itself has no package.
    return {domain: named for domain, named in found.items() if _NAME.fullmatch(named[0])}


def why_missing(op: str, domain: str = "") -> Missing:
    """Return the reason why the opset has no operator ``op`` in ``domain``, and what to do."""
    name = f"{domain}.{op}" if domain else op
    lacks = f"the opset has no operator {name!r}" + ("" if domain else " in the domain of ONNX")
    if name in left_out:
        return Missing(lacks, left_out[name])
    if domain in _noted and (found := _package_problem(name, domain)):
        return found
    is_known = domain in ("", "ai.onnx", "lite") or domain in providers
    if is_known and (meant := _meant(op, domain)):
        return Missing(lacks, meant)
    failed = [s for s in suspects if not is_known or s[1] == providers.get(domain, ("",))[0]]
    if failed:
        return Missing("; ".join([lacks, *(reason for reason, _ in failed)]), f"lite plugins {failed[0][1]}")
    if is_known:
        return Missing(lacks, "`lite ops` lists what it has")
    here = ", ".join(f"{name} by {' '.join(package)}" for name, package in providers.items()) or "none"
    unknown = f"no installed package has operators of the domain {domain} (domains of plugins: {here})"
    remedy = f"install the package that has them, or write one: `lite new-plugin operator {plugin_name(op)}`"
    return Missing(f"{lacks}; {unknown}", remedy)


def plugin_name(op: str) -> str:
    """Return a name for a new plugin that has the operator ``op``: ``HardSquash`` becomes ``hard_squash``."""
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", op.rpartition(".")[2]).lower()).strip("_")
    is_free = name[:1].isalpha() and name not in ("auto", "host", "null") and name.partition("_")[0] != "lite"
    return name if is_free else f"my_{name}".strip("_") if name else "my_operator"


def check_operators(graph: Graph, path: object, producer: str) -> None:
    """Raise if the graph of a model file contains operators that the opset lacks.

    Args:
        graph: the graph.
        path: the file.
        producer: the program that wrote it.

    Raises:
        UnsupportedOperatorError: lists all of them.
    """
    unknown = [node for scope in graph.walk() for node in scope.nodes if find(node.op, node.domain) is None]
    named: dict[tuple[str, str], list[str]] = {}
    for node in unknown:
        named.setdefault((node.op, node.domain), []).append(node.name)
    problems = []
    for (op, domain), nodes in named.items():
        reason, remedy = why_missing(op, domain)
        if domain in ("", "lite"):
            reason, remedy = f"{reason}; the file was written by {producer}", "pip install --upgrade lite-core"
        problems.append(OperatorProblem(f"{domain}.{op}" if domain else op, reason, tuple(nodes), remedy))
    if problems:
        raise UnsupportedOperatorError(f"model {str(path)!r}", problems)


def _package_problem(name: str, domain: str) -> Missing | None:
    """Return what is wrong with the package that provided an operator when a model file was written."""
    package, version = _noted[domain]
    origin = f"operator {name} is from {package} {version} (so says the file)"
    if domain in providers:
        if providers[domain] == (package, version):
            return None
        here = " ".join(providers[domain])
        return Missing(f"{origin}; installed is {here}, which lacks it", f"pip install {package}=={version}")
    from importlib import metadata  # not at the top: it takes long to import

    try:
        here = metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return Missing(f"{origin}, which is not installed", f"pip install {package}")
    return Missing(f"{origin}; {package} {here} is installed, but its plugin provides none", f"lite plugins {package}")


def _meant(op: str, domain: str) -> str:
    """Return the operators that a name may stand for, as a sentence; empty if there are none."""
    import difflib  # not at the top: few programs need it

    known = [*all_ops()]
    same = [d for d in known if d.name.lower() == op.lower() or d.qualified_name.lower() == op.lower()]
    if same:
        return f"it has {' or '.join(_with_domain(d) for d in same)}"
    here = [d for d in known if d.domain == ("" if domain == "ai.onnx" else domain)] or known
    by_name = {d.name.lower(): d for d in here}
    near = difflib.get_close_matches(op.lower(), by_name, 3, _SIMILARITY)
    return f"did you mean {' or '.join(by_name[name].qualified_name for name in near)}?" if near else ""


def _with_domain(definition: OpDef) -> str:
    where = f"in the domain {definition.domain}" if definition.domain else "in the domain of ONNX"
    return f'{definition.name} {where} (domain="{definition.domain}")'
