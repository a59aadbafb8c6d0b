"""Changes of public names: which of them can break a plugin or a program, and which cannot."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Changes", "changes", "merged", "name_of"]


@dataclass(frozen=True)
class Changes:
    """The difference between a committed list and the present names.

    Attributes:
        incompatible: a sentence for each change that can break a caller or a plugin.
        kept: the committed lines of these names.
        compatible: the present lines of new names, and of functions with new optional parameters.
    """

    incompatible: list[str]
    kept: list[str]
    compatible: list[str]


def changes(committed: Sequence[str], now: Sequence[str]) -> Changes:
    """Compare two lists of lines. It makes no difference which name of an object has its members listed."""
    old, new = _by_name(committed), _by_name(now)
    broken: dict[str, str] = {}
    for name, line in old.items():
        if name not in new:
            broken[name] = f"{line}: is gone"
        elif new[name] != line and not _extends(line, new[name], old):
            broken[name] = f"{line}: is now {new[name].removeprefix(name).lstrip(':= ')}"
    for name, line in new.items():
        if name not in old and _is_protocol(name, old):
            broken[name] = f"{line}: is new in a Protocol, and plugins lack it; make it a Protocol of its own"
    kept = [line for line in committed if name_of(line) in broken]
    known = {*committed}
    compatible = [line for line in now if line not in known and name_of(line) not in broken]
    return Changes([*broken.values()], kept, compatible)


def merged(committed: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the lines of the next list: compatible changes are made, all others are not."""
    found = changes(committed, now)
    known, compatible, kept = {*committed}, {*found.compatible}, {*found.kept}
    lines = [line for line in now if line in compatible or (line in known and line not in kept)]
    for line in found.kept:  # after the line that it followed
        before = [lines.index(one) + 1 for one in committed[: committed.index(line)] if one in lines]
        lines.insert(max(before, default=0), line)
    return lines


def _by_name(lines: Sequence[str]) -> dict[str, str]:
    """Return lines by their names. An object of several names has a line for each, and so have its members."""
    found = {name_of(line): line for line in lines}
    for line in lines:
        name, is_other, target = line.partition(" = ")
        if is_other and target in found:
            members = {one: text for one, text in found.items() if one == target or one.startswith(f"{target}.")}
            found.update({name + one[len(target) :]: name + text[len(target) :] for one, text in members.items()})
    return found


def name_of(line: str) -> str:
    """Return the dotted name that a line begins with."""
    match = re.match(r"[\w.]+", line)
    assert match is not None, line
    return match[0]


def _is_protocol(name: str, lines: Mapping[str, str]) -> bool:
    """Return True if a name is a member of a class that is listed as a Protocol."""
    return lines.get(name.rpartition(".")[0], "").endswith(": Protocol")


def _extends(old: str, new: str, lines: Mapping[str, str]) -> bool:
    """Return True if a changed line only has further parameters, at the end and with defaults.

    Methods of Protocols are called by Lite: a plugin that has not the parameter would fail.
    """
    if "(" not in old or "(" not in new or _is_protocol(name_of(old), lines):
        return False
    (before, arguments, after), (now, further, rest) = _parts(old), _parts(new)
    if (before, after) != (now, rest):
        return False
    return _parameters_extend(ast.parse(f"lambda {arguments}: 0"), ast.parse(f"lambda {further}: 0"))


def _parts(line: str) -> tuple[str, str, str]:
    """Split a line into what is before its parameters, the parameters, and what is after them."""
    start, end = line.index("("), line.rindex(")")
    return line[:start], line[start + 1 : end], line[end + 1 :]


def _parameters_extend(old: ast.Module, new: ast.Module) -> bool:
    (before,) = (node.args for node in ast.walk(old) if isinstance(node, ast.Lambda))
    (now,) = (node.args for node in ast.walk(new) if isinstance(node, ast.Lambda))
    olds, news = _positional(before), _positional(now)
    further = news[len(olds) :]
    named, all_named = _named(before), _named(now)
    stars = [ast.dump(one) if one else "" for one in (before.vararg, before.kwarg)]
    return (
        olds == news[: len(olds)]
        and all(default for _, _, default in further)
        and (before.vararg is None or not further)
        and stars == [ast.dump(one) if one else "" for one in (now.vararg, now.kwarg)]
        and named.items() <= all_named.items()
        and all(all_named[name] for name in all_named.keys() - named.keys())
    )


def _positional(arguments: ast.arguments) -> list[tuple[str, bool, str]]:
    """Return the name of each positional parameter, if it is positional only, and its default."""
    every = [*arguments.posonlyargs, *arguments.args]
    defaults = [""] * (len(every) - len(arguments.defaults)) + [ast.unparse(one) for one in arguments.defaults]
    return [(one.arg, one in arguments.posonlyargs, default) for one, default in zip(every, defaults)]


def _named(arguments: ast.arguments) -> dict[str, str]:
    """Return the default of each keyword-only parameter by its name; empty if it has none."""
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults)
    return {one.arg: "" if default is None else ast.unparse(default) for one, default in pairs}
