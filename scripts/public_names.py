"""Public names as lines of text: one line for each module's name and each member, with its parameters and defaults.

    lite_core.backend.Device: dataclass(backend, index=0, name='')
    lite_core.backend.Device.backend: str
    lite_core.backend.Backend.probe(self) -> Sequence[Device] | Unavailable
    lite_core.read_model(path, **options)
    lite_core.Device = lite_core.backend.Device

Types are listed where a plugin implements them: members of Protocols, and fields. Python's version makes no difference.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, ForwardRef, get_origin

__all__ = ["lines_of_modules"]

#: Special methods that make an object callable, a context or a container; others are not listed.
_SPECIAL = ("__call__", "__contains__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__")


def lines_of_modules(
    modules: Mapping[str, Iterable[str]], made_by_lite: Mapping[str, Collection[str]], homes: dict[int, str]
) -> Iterator[str]:
    """Iterate over the lines of the public names of modules.

    Args:
        modules: the names of each module; if empty, those of its ``__all__``.
        made_by_lite: classes of objects that only Lite makes, so that their parameters are not listed, each with its
            public members; all if empty.
        homes: the public name of each class and function listed so far, by identity; it is completed. One that is
            public under several names has its members listed once.
    """
    for module_name, chosen in modules.items():
        module = import_module(module_name)
        for name in sorted(chosen or module.__all__):
            yield from _lines_of(f"{module_name}.{name}", getattr(module, name), made_by_lite, homes)


def _lines_of(
    name: str, thing: Any, made_by_lite: Mapping[str, Collection[str]], homes: dict[int, str]
) -> Iterator[str]:
    is_ours = getattr(thing, "__module__", "").startswith("lite_")
    if isinstance(thing, type) and is_ours and get_origin(thing) is None:
        if id(thing) in homes:
            yield f"{name} = {homes[id(thing)]}"
            return
        homes[id(thing)] = name
        yield _line_of_class(name, thing, has_parameters=name not in made_by_lite)
        listed = made_by_lite.get(name)
        for member, line in sorted(_members(thing).items()):
            if not listed or member in listed:
                yield f"{name}.{member}{line}"
    elif isinstance(thing, FunctionType) and is_ours:
        if homes.setdefault(id(thing), name) != name:
            yield f"{name} = {homes[id(thing)]}"
        else:
            yield f"{name}({_parameters(inspect.signature(thing))})"
    elif isinstance(thing, ModuleType):
        yield f"{name}: module"
    elif type(thing) in (int, bool, float, str) and not name.endswith("__version__"):
        yield f"{name} = {thing!r}"
    else:
        is_function = callable(thing) and not isinstance(thing, type) and get_origin(thing) is None
        yield f"{name}: {'function' if is_function else 'value'}"


# **** classes ****


def _line_of_class(name: str, cls: type, has_parameters: bool) -> str:
    if _is_protocol(cls):
        return f"{name}: Protocol"
    if issubclass(cls, Enum):
        return f"{name}: enumeration"
    kind = "dataclass" if dataclasses.is_dataclass(cls) else "named tuple" if hasattr(cls, "_fields") else "class"
    parameters = (
        f"({_parameters(inspect.signature(cls)) if _has_own_constructor(cls) else ''})" if has_parameters else ""
    )
    bases = [base.__name__ for base in cls.__bases__ if issubclass(base, BaseException) or _adds_members(base)]
    return f"{name}: {kind}{parameters}" + (f" extends {', '.join(bases)}" if bases else "")


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("lite_")


def _has_own_constructor(cls: type) -> bool:
    return any(
        {"__init__", "__new__"} & vars(one).keys() for one in cls.__mro__ if _is_ours(one) and not _is_protocol(one)
    )


def _members(cls: type) -> dict[str, str]:
    """Return the rest of the line of each public member, by its name."""
    found: dict[str, str] = {}
    for one in reversed([c for c in cls.__mro__ if _is_ours(c)]):
        found.update({name: ": attribute" for name in (*_slots(one), *_set_by_methods(one)) if name[0] != "_"})
        annotations = inspect.get_annotations(one)
        found.update({name: f": {_text(a)}" for name, a in annotations.items() if name[0] != "_"})
        for name, thing in vars(one).items():
            if name[0] != "_" or name in _SPECIAL:
                found[name] = _line_of_member(name, thing, one, found.get(name, ""))
    return found


def _adds_members(base: type) -> bool:
    """Return True if a base class of Lite has public members; without them it is nobody's business."""
    return _is_ours(base) and any(name[0] != "_" for name in vars(base))


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _set_by_methods(cls: type) -> set[str]:
    """Return the names of the attributes that methods of a class set, ``__init__`` among them."""
    if dataclasses.is_dataclass(cls) or issubclass(cls, tuple):
        return set()  # their attributes are their fields
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    attributes = [
        node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return {one.attr for one in attributes if isinstance(one.value, ast.Name) and one.value.id == "self"}


def _line_of_member(name: str, thing: Any, owner: type, known: str) -> str:
    if isinstance(thing, (property, functools.cached_property)):
        return ": property"
    if isinstance(thing, Enum):
        return f" = {thing.value!r}"
    is_static = isinstance(thing, (staticmethod, classmethod))
    function = thing.__func__ if is_static else thing
    if not isinstance(function, FunctionType):
        return known or ": attribute"
    signature = inspect.signature(function)
    if _is_protocol(owner):
        returned = signature.return_annotation
        return f"({_parameters(signature, typed=True)}) -> {_text(returned)}"
    return f"({_parameters(signature)})"


# **** parameters ****


def _parameters(signature: inspect.Signature, typed: bool = False) -> str:
    """Return parameters as in a definition, with types only if asked."""
    texts: list[str] = []
    kinds = inspect.Parameter
    previous = None
    for parameter in signature.parameters.values():
        if previous is kinds.POSITIONAL_ONLY and parameter.kind is not kinds.POSITIONAL_ONLY:
            texts.append("/")
        if parameter.kind is kinds.KEYWORD_ONLY and previous not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            texts.append("*")
        texts.append(_parameter(parameter, typed))
        previous = parameter.kind
    return ", ".join([*texts, *(["/"] if previous is kinds.POSITIONAL_ONLY else [])])


def _parameter(parameter: inspect.Parameter, typed: bool) -> str:
    is_many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    stars = ("*" if parameter.kind is parameter.VAR_POSITIONAL else "**") if is_many else ""
    annotation = parameter.annotation if typed else parameter.empty
    text = stars + parameter.name + ("" if annotation is parameter.empty else f": {_text(annotation)}")
    return text if parameter.default is parameter.empty else f"{text}={_default(parameter.default)}"


def _default(value: Any) -> str:
    """Return a default as Python writes it; ``...`` if that is not a literal, which may differ between versions."""
    if isinstance(value, Enum):
        return repr(value.value)
    is_literal = value is None or type(value) in (bool, int, float, str)
    is_literal |= type(value) in (tuple, frozenset) and all(_default(one) != "..." for one in value)
    return repr(value) if is_literal and len(value if isinstance(value, frozenset) else ()) < 2 else "..."


def _text(annotation: Any) -> str:
    """Return an annotation as it is written; the modules of the workspace have them as strings."""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")
