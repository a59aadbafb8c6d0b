"""The kinds of plugins that ``lite new-plugin`` writes, and what the user asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["KINDS", "Kind", "NewPlugin"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plugin, and what a package with one contains.

    Attributes:
        about: its line in the help.
        hook: the hook that returns its items.
        module: the module of the package that defines the items, in a list named after the hook: ``OPS``.
        items: the items in words.
        type: module and name of the items' type.
        folders: the folders of its templates, without those of every package.
        requires: what the package requires besides lite-core and NumPy; a distribution of Lite without a version.
        cases: the module with cases of the conformance suite; empty if there is none.
        steps: commands to try; ``{name}`` and ``{command}`` stand for the plugin's names.
    """

    about: str
    hook: str
    module: str
    items: str
    type: tuple[str, str]
    folders: tuple[str, ...]
    requires: tuple[str, ...] = ()
    cases: str = ""
    steps: tuple[str, ...] = ()

    @property
    def items_list(self) -> str:
        """The name of the list in the module."""
        return self.hook.removeprefix("lite_").upper()

    @property
    def is_backend(self) -> bool:
        return self.hook == "lite_backends"


def _backend(about: str, folder: str, *requires: str) -> Kind:
    return Kind(
        about,
        "lite_backends",
        "backend",
        "backends",
        ("lite_core.backend", "Backend"),
        ("any_backend", folder),
        requires,
        steps=("lite backends", "lite-conformance --backend {name} --level L1"),
    )


KINDS = {
    "kernel-backend": _backend("a device, by one function for each operator", "kernel_backend"),
    "backend": _backend("a device, by a compiler of whole partitions", "backend", "lite-compiler"),
    "operator": Kind(
        "an operator that Lite lacks",
        "lite_ops",
        "operators",
        "operators",
        ("lite_core.ops", "OpDef"),
        ("operator",),
        cases="operator_cases",
        steps=("lite ops {name}.Squish",),
    ),
    "pass": Kind(
        "a rewrite of graphs that runs after Lite's own",
        "lite_passes",
        "passes",
        "graph passes",
        ("lite_core.passes", "Pass"),
        ("pass",),
        cases="pass_cases",
    ),
    "format": Kind(
        "a reader of model files",
        "lite_formats",
        "formats",
        "formats",
        ("lite_core.formats", "Format"),
        ("format",),
        cases="format_cases",
    ),
    "command": Kind(
        "a command of `lite`",
        "lite_commands",
        "commands",
        "commands",
        ("click", "Command"),
        ("command",),
        ("click>=8.1", "lite-tools"),
        steps=("lite {command} --help",),
    ),
}
_NUMBA_BACKEND = _backend("a device, by one loop for each operator", "numba_backend", "lite-numba")


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """A plugin as the user asks for it.

    Attributes:
        name: the plugin's name, and that of its backend, domain, format and command.
        kinds: names of its kinds.
        numba: whether the kernels of a kernel-backend are compiled by Numba.
        services: names of the CI services that it is tested by.
    """

    name: str
    kinds: Sequence[str]
    numba: bool = False
    services: Sequence[str] = ()

    @property
    def distribution(self) -> str:
        return f"lite-{self.name.replace('_', '-')}"

    @property
    def package(self) -> str:
        return f"lite_{self.name}"

    @property
    def command(self) -> str:
        """The name in the form that commands have."""
        return self.name.replace("_", "-")

    @property
    def class_name(self) -> str:
        """The name in the form that classes have."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def title(self) -> str:
        """The kinds in words: ``operator, pass and format``."""
        words = ["backend" if KINDS[kind].is_backend else kind for kind in self.kinds]
        return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))

    @property
    def contents(self) -> list[Kind]:
        """Its kinds."""
        return [_NUMBA_BACKEND if self.numba and KINDS[name].is_backend else KINDS[name] for name in self.kinds]

    @property
    def has_backend(self) -> bool:
        return any(kind.is_backend for kind in self.contents)

    @property
    def has_operator(self) -> bool:
        return any(kind.hook == "lite_ops" for kind in self.contents)

    @property
    def next_steps(self) -> list[str]:
        """The commands to type in the package's folder."""
        steps = [step.format(name=self.name, command=self.command) for kind in self.contents for step in kind.steps]
        return ["pip install -e '.[test]'", *steps, *([] if self.has_backend else ["pytest"])]
