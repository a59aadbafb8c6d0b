"""The files of a new plugin's package, made from templates.

A template is a file ``PATH.tmpl`` in a folder of ``templates``: in ``package`` for every package, in the other folders
for its kinds. It becomes the file ``PATH`` of the package, if it is not one of the parts that are put into other files.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from string import Template

import click

from lite_core import __version__
from lite_core.backend import API_VERSION
from lite_tools.cli.new_plugin_ci import SERVICES
from lite_tools.cli.new_plugin_kinds import Kind, NewPlugin

__all__ = ["TEMPLATES", "render", "write_package"]

TEMPLATES = Path(__file__).with_name("templates")
_PARTS = ("cases.toml", "hook.py", "own_operator.py", "section.md")


def render(plugin: NewPlugin) -> dict[str, str]:
    """Return the content of each file of a plugin's package, by path, in the order in which a reader wants them."""
    values = _values(plugin)
    files = {}
    for folder in ("package", *_folders(plugin)):
        for path in (file.relative_to(TEMPLATES / folder).as_posix() for file in (TEMPLATES / folder).rglob("*.tmpl")):
            path = path.removesuffix(".tmpl")
            if path not in _PARTS:
                target = path.replace("src/package", f"src/{plugin.package}").replace("gitignore", ".gitignore")
                files[target] = _filled(f"{folder}/{path}", values)
    for name in plugin.services:
        files[SERVICES[name].file] = _filled(f"ci/{name}.yml", {**values, "steps": SERVICES[name].steps(plugin)})
    return {path: files[path] for path in sorted(files, key=_rank)}


def write_package(plugin: NewPlugin, folder: Path) -> list[str]:
    """Write a plugin's package to a new folder and return the paths of its files. After an error, nothing remains.

    Raises:
        click.BadParameter: the folder already exists; it is not changed.
        click.ClickException: the operating system reports an error.
    """
    files = render(plugin)
    try:
        folder.mkdir()
    except FileExistsError:
        raise click.BadParameter(
            f"{str(folder)!r} exists and is not overwritten; choose another name or another --output",
            param_hint="NAME",
        ) from None
    except OSError as error:
        raise click.ClickException(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        shutil.rmtree(folder)
        raise click.ClickException(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    return list(files)


def _values(plugin: NewPlugin) -> dict[str, str]:
    """Return the texts that the templates contain as ``$name``."""
    kinds, squish = plugin.contents, f"{plugin.name}.Squish" if plugin.has_operator else ""
    values = {
        "name": plugin.name,
        "command": plugin.command,
        "distribution": plugin.distribution,
        "package": plugin.package,
        "class_name": plugin.class_name,
        "kinds": plugin.title,
        "description": f"Lite plugin {plugin.name}: {plugin.title}",
        "compatible": _compatible(__version__),
        "api_version": str(API_VERSION),
        "dependencies": ", ".join(f'"{requirement}"' for requirement in _requirements(kinds)),
        "types": "\n".join(sorted(f"    from {module} import {name}" for module, name in {k.type for k in kinds})),
        # The backend and the pass of a package use its operator.
        "own_import": f"from {plugin.package}.operators import SQUISH\n" if squish else "",
        "own_instruction": f'\n    "{squish}": SQUISH.reference,' if squish else "",
        "own_case": f', "{squish}[f32,*"' if squish else "",
        "fused": squish or "Softsign",
        "fused_op": "Squish" if squish else "Softsign",
        "fused_domain": f', domain="{plugin.name}"' if squish else "",
    }
    cases = [f'{plugin.name}_{k.module} = "{plugin.package}.{k.cases}"' for k in kinds if k.cases]
    values["cases"] = _filled("package/cases.toml", {"entry_points": "\n".join(cases)}) if cases else ""
    hooks = (
        {"hook": k.hook, "type": k.type[1], "items": k.items, "module": k.module, "list": k.items_list} for k in kinds
    )
    values["hooks"] = "".join(_filled("package/hook.py", {**values, **hook}) for hook in hooks).rstrip()
    values["own_operator"] = _parts(plugin, "own_operator.py", values).rstrip() if squish else ""
    values["sections"] = _parts(plugin, "section.md", values).rstrip()
    return values


def _folders(plugin: NewPlugin) -> list[str]:
    return [folder for kind in plugin.contents for folder in kind.folders]


def _parts(plugin: NewPlugin, part: str, values: dict[str, str]) -> str:
    """Return a part of a file from all folders that have one."""
    found = (f"{folder}/{part}" for folder in _folders(plugin) if (TEMPLATES / folder / f"{part}.tmpl").is_file())
    return "".join(_filled(path, values) for path in found)


def _filled(path: str, values: dict[str, str]) -> str:
    text = Template((TEMPLATES / f"{path}.tmpl").read_text(encoding="utf-8")).substitute(values)
    return f"{text.rstrip()}\n" if text else ""


def _rank(path: str) -> tuple[bool, bool, bool, bool, str]:
    """Return the key that sorts files: pyproject.toml, README.md, sources, tests, all others."""
    return path != "pyproject.toml", path != "README.md", not path.startswith("src"), not path.startswith("test"), path


def _requirements(kinds: Sequence[Kind]) -> list[str]:
    """Return the requirements of a package, those of Lite first."""
    found = {"lite-core", "numpy>=1.24", *(requirement for kind in kinds for requirement in kind.requires)}
    compatible = _compatible(__version__)
    named = [f"{one}{compatible}" if one.startswith("lite-") else one for one in sorted(found)]
    return sorted(named, key=lambda requirement: not requirement.startswith("lite-"))


def _compatible(version: str) -> str:
    """Return the versions of Lite that a plugin written for this version is compatible with: ``>=0.1,<0.2``."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}"
