"""Remedies for failures of plugins, which all commands and reports take from here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lite_core.backend import API_VERSION
from lite_core.plugins import PluginRecord
from lite_core.plugins.record import PluginFailure

__all__ = ["missing_requirement", "remedies_of"]

#: Packages whose modules have other names.
_PACKAGE_OF = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "google": "protobuf",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "usb": "pyusb",
    "yaml": "pyyaml",
}
_CLAIMED = re.compile(r"choose one by LITE_PLUGINS=([^=\s]+)=")
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_SUCH_NAME = re.compile(r"ImportError: cannot import name '\w+' from '(lite_\w+)")
_OTHER_VERSION = re.compile(r"requires lite-core (\S+), this is")
_FOR_API = re.compile(r"is written for API (\d+)(?: to (\d+))?")
_STATED = re.compile(r"states (LITE_API_VERSION = .*?); it must be")
#: Failures whose cause may be outside the plugin: it has ended its process, or did not answer.
_ENDED = re.compile(r"^(it ended its process|no answer)")


def remedies_of(record: PluginRecord, failure: PluginFailure) -> list[str]:
    """Return what may help against a failure, the best first: commands, settings, or a sentence.

    Args:
        record: the plugin.
        failure: one of its failures.
    """
    package = record.distribution
    if claimed := _CLAIMED.search(failure.error):
        return [f"export LITE_PLUGINS={claimed.group(1)}={package}", f"pip uninstall {package}"]
    if failure.error.endswith("is taken by lite-tools"):
        return [f"{_report(package)}: rename it", f"pip uninstall {package}"]
    if failure.phase == "version":
        return _for_version(package, failure.error)
    if missing := _MISSING_MODULE.search(failure.error):
        return _for_missing_module(record, missing.group(1))
    if other := _NO_SUCH_NAME.search(failure.error):
        return [f"pip install --upgrade {package} {other.group(1).replace('_', '-')}"]
    if "working folder only" in failure.error:
        return ["pip install ."]
    if _ENDED.match(failure.error):
        return [f"pip install --upgrade {package} lite-core", f"pip uninstall {package}", _report(package)]
    return [_report(package), f"pip uninstall {package}"]


def missing_requirement(record: PluginRecord, failure: PluginFailure) -> str:
    """Return what the author of a package does about a failure because a module is missing; empty for others."""
    missing = _MISSING_MODULE.search(failure.error)
    top = missing.group(1).partition(".")[0] if missing else ""
    if not top or top == re.split(r"[.:]", record.module)[0]:
        return ""
    name = _PACKAGE_OF.get(top, top).replace("_", "-")
    return f"add {name} to dependencies, or import it where it is needed; here: pip install {name}"


def _for_version(package: str, error: str) -> list[str]:
    if other := _OTHER_VERSION.search(error):
        return [f"pip install --upgrade {package}", f'pip install "lite-core{other.group(1)}"']
    written = _FOR_API.search(error)
    if written is None:  # it states none, or nonsense
        stated = _STATED.search(error)
        what = f"{stated[1]} must be LITE_API_VERSION = {API_VERSION}" if stated else ""
        missing = f"LITE_API_VERSION = {API_VERSION} is missing"
        return [f"{_report(package)}: {what or missing}", f"pip uninstall {package}"]
    newest = int(written.group(2) or written.group(1))
    return [f"pip install --upgrade {package if newest < API_VERSION else 'lite-core'}"]


def _for_missing_module(record: PluginRecord, module: str) -> list[str]:
    package, top = record.distribution, module.partition(".")[0]
    own = re.split(r"[.:]", record.module)[0]
    if top == own and module != own:
        return [_report(package), f"pip install --force-reinstall {package}"]
    if top == own:
        return [f"pip install --force-reinstall {package}"]
    if top in ("lite_core", "lite_tools"):  # a module of Lite that has moved, or is not there yet
        return [f"pip install --upgrade {package} {top.replace('_', '-')}"]
    name = _PACKAGE_OF.get(top, top).replace("_", "-")
    stated = _requirement(package, name)
    return (
        [f"pip install {stated}"] if stated else [f"pip install {name}", f"{_report(package)}: it requires no {name}"]
    )


def _requirement(package: str, name: str) -> str:
    """Return a package's requirement of another one, as an argument for pip; empty if it states none."""
    from importlib import metadata  # not at the top: it takes long to import

    try:
        requirements: Iterable[str] = metadata.requires(package) or ()
    except (metadata.PackageNotFoundError, ValueError):
        return ""
    for text in requirements:
        requirement = text.partition(";")[0].strip()
        if re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-") == name.lower():
            return requirement if re.fullmatch(r"[\w.-]+", requirement) else f'"{requirement}"'
    return ""


def _report(package: str) -> str:
    """Return the advice to report the failure to the plugin's authors, with the address that their package states."""
    from importlib import metadata  # not at the top: it takes long to import

    where = ""
    try:
        stated = metadata.metadata(package).get_all
        urls = dict(text.split(", ", 1) for text in stated("Project-URL") or () if ", " in text)
        tracker = next((url for label, url in urls.items() if re.search("issue|bug|track", label, re.I)), "")
        others = [tracker, *urls.values(), *(stated("Home-page") or ()), *(stated("Author-email") or ())]
        where = next(filter(None, others), "")
    except (metadata.PackageNotFoundError, ValueError):
        pass
    at = f" ({where})" if where else ""
    return f"report it to the authors of {package}{at}, with what `lite plugins {package}` shows"
