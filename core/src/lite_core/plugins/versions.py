"""Whether a plugin fits this lite-core: by what its package requires, and by the contract it states.

The requirement is read from the package's metadata, so a plugin that does not fit is not even imported.
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

_ABOUT_US = re.compile(r"lite[-_.]+core(?![-_.]*[a-z0-9])", re.IGNORECASE)
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# What nearly every plugin writes: lite-core>=0.1,<0.2
_BOUNDS = re.compile(r"lite[-_.]+core\s*((?:[<>]=?\d+(?:\.\d+)*)(?:,[<>]=?\d+(?:\.\d+)*)*)", re.IGNORECASE)


def api_problem(stated: object) -> str:
    """Why a plugin's ``LITE_API_VERSION`` does not fit this core, empty when it does.

    Args:
        stated: a version, the range of versions ``(least, greatest)``, or None where the plugin states none.
    """
    if stated is None:
        return f"states no LITE_API_VERSION, this lite-core speaks API {API_VERSION}"
    bounds = (stated, stated) if isinstance(stated, int) else stated
    if not isinstance(bounds, tuple) or [type(bound) for bound in bounds] != [int, int] or bounds[0] > bounds[1]:
        return (
            f"states LITE_API_VERSION = {stated!r}; it must be a whole number or a range (least, greatest), "
            f"this lite-core speaks API {API_VERSION}"
        )
    least, greatest = bounds
    if least <= API_VERSION <= greatest:
        return ""
    written_for = f"{least}" if least == greatest else f"{least} to {greatest}"
    return f"is written for API {written_for}, this lite-core speaks API {API_VERSION}"


def requirement_problem(requirements: Iterable[str], version: str = __version__) -> str:
    """Why a distribution's declared requirements forbid this lite-core, empty when they do not.

    Args:
        requirements: what the distribution requires, as its metadata has it: ``lite-core<0.2,>=0.1``. One with
            a marker (``; extra == "test"``) is about another situation and is left to pip.
        version: the version of lite-core that is running.
    """
    for text in requirements:
        if not _ABOUT_US.match(text.strip()) or _is_plainly_met(text, version):
            continue
        # Importing these takes longer than all the rest of loading plugins.
        from packaging.requirements import InvalidRequirement, Requirement
        from packaging.utils import canonicalize_name

        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            logger.debug("the requirement %r is not understood; it is not checked: %s", text, error)
            continue
        about_us = canonicalize_name(requirement.name) == "lite-core" and requirement.marker is None
        if about_us and not requirement.specifier.contains(version, prereleases=True):
            return f"requires lite-core {requirement.specifier}, this is lite-core {version}"
    return ""


def _is_plainly_met(requirement: str, version: str) -> bool:
    """Whether a requirement made of plain bounds is met; False for what has to be read more carefully."""
    if not (_BOUNDS.fullmatch(requirement.strip()) and _NUMBERS.fullmatch(version)):
        return False
    ours = _numbers(version)
    return all(
        _COMPARISONS[sign](ours, _numbers(bound)) for sign, bound in re.findall(r"([<>]=?)([\d.]+)", requirement)
    )


def _numbers(version: str) -> list[int]:
    """The numbers of a version, without zeros at the end: 1.0 is 1."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers
