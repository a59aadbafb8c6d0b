"""The backend's option ``mkl``, and the environment variable ``LITE_MKL`` that is its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["KNOWN_OPTIONS", "MklSetting", "mkl_setting"]

#: The options that ``load(backend_options={"x86": {...}})`` accepts, with their values.
KNOWN_OPTIONS: Mapping[str, tuple[str, ...]] = {"mkl": ("auto", "always", "never")}

#: Values of ``LITE_MKL``, with the option's value for each. Other values are ignored.
_FROM_ENVIRONMENT: Mapping[str, str] = {"off": "never", "never": "never", "always": "always"}


class MklSetting(NamedTuple):
    """The use of MKL for large matrix products.

    Attributes:
        value: ``auto``: if it is installed and measured faster; ``always``: if it is installed; ``never``.
        source: the origin of the setting for messages, such as ``LITE_MKL=off``; empty for ``auto``.
    """

    value: str
    source: str = ""


def mkl_setting(own: Mapping[str, Any], environment: Mapping[str, str]) -> MklSetting:
    """Return the setting of a session.

    Args:
        own: the session's options for this backend, already checked; ``mkl`` overrides the environment.
        environment: the environment variables; ``LITE_MKL`` may be ``off`` or ``always``.
    """
    variable = environment.get("LITE_MKL", "").lower()
    value, source = own.get("mkl"), f"the option mkl={own.get('mkl')}"
    if value is None:
        value, source = _FROM_ENVIRONMENT.get(variable, "auto"), f"LITE_MKL={variable}"
    return MklSetting(value, "" if value == "auto" else source)
