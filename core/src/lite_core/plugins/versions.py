"""Compatibility of plugins with this lite-core: their declared requirements and the contract version they state.

Requirements are read from the package's metadata, so that an incompatible plugin is not even imported.
"""

from __future__ import annotations

import logging
import operator
import re
from collections.abc import Iterable

from lite_core.backend import API_VERSION
from lite_core.version import __version__

__all__ = ["api_problem", "requirement_problem"]

logger = logging.getLogger("lite.plugins")

_ON_LITE_CORE = re.compile(r"lite[-_.]+core(?![-_.]*[a-z0-9])", re.IGNORECASE)
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# The usual form of a requirement: lite-core>=0.1,<0.2 or lite-core[extra]>=0.1,<0.2
_BOUNDS = re.compile(
    r"lite[-_.]+core(?:\[[\w,-]+\])?\s*((?:[<>]=?\d+(?:\.\d+)*)(?:,[<>]=?\d+(?:\.\d+)*)*)", re.IGNORECASE
)


def api_problem(stated: object) -> str:
    """Return the reason why a plugin's ``LITE_API_VERSION`` does not fit this core; empty if it fits.

    Args:
        stated: a version, a range of versions ``(least, greatest)``, or None if the plugin states none.
    """
    ours = f"this lite-core supports API {API_VERSION}"
    if stated is None:
        return f"states no LITE_API_VERSION, {ours}"
    bounds = (stated, stated) if isinstance(stated, int) else stated
    if not isinstance(bounds, tuple) or [type(bound) for bound in bounds] != [int, int] or bounds[0] > bounds[1]:
        return f"states LITE_API_VERSION = {stated!r}; it must be a whole number or a range (least, greatest), {ours}"
    least, greatest = bounds
    if least <= API_VERSION <= greatest:
        return ""
    written_for = f"{least}" if least == greatest else f"{least} to {greatest}"
    return f"is written for API {written_for}, {ours}"


def requirement_problem(requirements: Iterable[str], version: str = __version__) -> str:
    """Return the reason why a distribution's requirements exclude this lite-core; empty if they do not.

    Args:
        requirements: the requirements in the distribution's metadata: ``lite-core<0.2,>=0.1``. A requirement with
            a marker (``; extra == "test"``) is conditional and left to pip.
        version: the running version of lite-core.
    """
    for text in requirements:
        if not _ON_LITE_CORE.match(text.strip()) or _has_met_bounds(text, version):
            continue
        # Importing these takes longer than all the rest of loading plugins, so that usual requirements avoid it.
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            logger.debug("the requirement %r is not understood; it is not checked: %s", text, error)
            continue
        if requirement.marker is None and not requirement.specifier.contains(version, prereleases=True):
            return f"requires lite-core {requirement.specifier}, this is lite-core {version}"
    return ""


def _has_met_bounds(requirement: str, version: str) -> bool:
    """Return True if a requirement consists of simple bounds that are met; False for every other requirement."""
    if not (_BOUNDS.fullmatch(requirement.strip()) and _NUMBERS.fullmatch(version)):
        return False
    ours = _numbers(version)
    return all(_COMPARISONS[sign](ours, _numbers(text)) for sign, text in re.findall(r"([<>]=?)([\d.]+)", requirement))


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version without trailing zeros: 1.0 equals 1."""
    return [int(number) for number in re.sub(r"(\.0+)+$", "", version).split(".")]
