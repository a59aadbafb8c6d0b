"""The backend's own option, ``mkl``, and the environment variable that decides where it is not given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["KNOWN_OPTIONS", "MklSetting", "mkl_setting"]

#: What ``load(backend_options={"x86": {...}})`` takes, with the values of each.
KNOWN_OPTIONS: Mapping[str, tuple[str, ...]] = {"mkl": ("auto", "always", "never")}

#: Values of ``LITE_MKL``, and the option's value that each stands for. Any other one is as none.
_FROM_ENVIRONMENT: Mapping[str, str] = {"off": "never", "never": "never", "always": "always"}


class MklSetting(NamedTuple):
    """Whether MKL computes large matrix products.

    Attributes:
        value: ``auto``: where it is found and measured faster; ``always``: wherever it is found; ``never``.
        source: who said so, for messages: ``LITE_MKL=off``; empty for ``auto``.
    """

    value: str
    source: str = ""


def mkl_setting(own: Mapping[str, Any], environment: Mapping[str, str]) -> MklSetting:
    """What holds for a session.

    Args:
        own: the session's options for this backend, checked; ``mkl`` among them overrides the environment.
        environment: ``LITE_MKL`` may be ``off`` or ``always``.
    """
    said = environment.get("LITE_MKL", "").lower()
    value, source = own.get("mkl"), f"the option mkl={own.get('mkl')}"
    if value is None:
        value, source = _FROM_ENVIRONMENT.get(said, "auto"), f"LITE_MKL={said}"
    return MklSetting(value, "" if value == "auto" else source)
