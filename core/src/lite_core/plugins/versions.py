"""Whether a plugin fits this lite-core: by what its package requires, and by the contract it states.

The requirement is read from the package's metadata, so a plugin that does not fit is not even imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from lite_core import __version__
from lite_core.backend import API_VERSION

__all__ = ["api_problem", "requirement_problem"]

logger = logging.getLogger("lite.plugins")


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
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            logger.debug("the requirement %r is not understood; it is not checked: %s", text, error)
            continue
        about_us = canonicalize_name(requirement.name) == "lite-core" and requirement.marker is None
        if about_us and not requirement.specifier.contains(version, prereleases=True):
            return f"requires lite-core {requirement.specifier}, this is lite-core {version}"
    return ""
