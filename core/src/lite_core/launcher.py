"""The command ``lite`` and :func:`lite_core.convert`: both call lite-tools; without it, a plain subset of ``lite``."""

from __future__ import annotations

import sys
from typing import Any

from lite_core.backend import API_VERSION
from lite_core.errors import ConversionError
from lite_core.plugins import default_plugins
from lite_core.plugins.installed import tool
from lite_core.plugins.known import known_distributions
from lite_core.schedule import backends
from lite_core.version import __version__

__all__ = ["convert", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Run lite-tools' command line; without it, answer ``lite backends`` and ``lite doctor`` in plain text. Exits."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        command_line, broken = tool("main"), ""
    except Exception as error:  # `lite doctor` must still work
        command_line, broken = None, f"lite-tools is installed and does not load: {type(error).__name__}: {error}"
    if command_line:
        sys.exit(command_line(given))
    plain = {"--version": lambda: [f"lite-core {__version__}"], "backends": _backends, "doctor": _doctor}
    if " ".join(given) in plain:
        print(*plain[given[0]](), sep="\n")
        if not broken:
            sys.exit(int(given == ["doctor"] and any(record.failed for record in default_plugins().records())))
    providers = map(known_distributions("commands").get, given[:1])
    packages = filter(None, (broken and "--upgrade", "'lite-core[tools]'", *providers))
    print(f"error: {broken or 'lite-tools is not installed'}\nnext: pip install {' '.join(packages)}", file=sys.stderr)
    sys.exit(3)


def convert(*arguments: Any, **named: Any) -> Any:
    """Convert a model into a .lite file for one or several targets; see ``lite_tools.conversion.convert``."""
    if conversion := tool("convert"):
        return conversion(*arguments, **named)
    raise ConversionError("no model can be converted", ["lite-tools is missing: pip install 'lite-core[tools]'"])


def _backends() -> list[str]:
    return [f"backend {backend.name}: {backend.reason or 'ready'}" for backend in backends()]


def _doctor() -> list[str]:
    for hook in ("lite_backends", "lite_formats", "lite_passes"):
        default_plugins().ask(hook)  # records failures
    told = ((f"plugin {r.label}", r.phase, r.error, *r.warnings) for r in default_plugins().records())
    plugins = (": ".join(filter(None, parts)) for parts in told)
    return [f"lite-core {__version__}, plugin API {API_VERSION}, Python {sys.version}", *plugins, *_backends()]
