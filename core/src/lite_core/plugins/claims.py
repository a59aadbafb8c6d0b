"""Names of backends, formats, operators and commands that several packages claim.

None of them gets such a name, unless the user gives it to one: by ``LITE_PLUGINS=x86=lite-x86,onnx=lite-onnx``, or in
the configuration by ``{"plugins": {"x86": "lite-x86"}}``. No other package can claim a name that the user has given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from lite_core.plugins.record import PluginRecord
from lite_core.storage import configuration

__all__ = ["refused_claims"]


def refused_claims(claims: Sequence[tuple[PluginRecord, str]]) -> dict[int, tuple[str, bool]]:
    """Return the claims of names that are refused, by position, with the reason.

    The second item is True if the claim is a fault: the user has not given the name to any package.
    """
    given: dict[str, str] = dict(found) if isinstance(found := configuration().get("plugins"), dict) else {}
    listed = (pair.partition("=") for pair in os.environ.get("LITE_PLUGINS", "").replace(" ", "").split(","))
    given.update((name, package) for name, _, package in listed if package)
    refused = {}
    for position, (record, name) in enumerate(claims):
        owner = given.get(name)
        rivals = [r for r, other in claims if other == name and owner in (None, r.distribution)]
        if owner not in (None, record.distribution):
            refused[position] = f"LITE_PLUGINS or the configuration gives it to {owner}, not to {record.label}", False
        elif len(rivals) > 1:
            labels = " and ".join(dict.fromkeys(rival.label for rival in rivals))
            choices = " or ".join(dict.fromkeys(f"LITE_PLUGINS={name}={rival.distribution}" for rival in rivals))
            reason = f"it is claimed by {labels}, so none of them has it. Uninstall one, or choose one by {choices}"
            if {rival.distribution for rival in rivals} == {record.distribution}:
                reason = f"its package provides it {len(rivals)} times, by {labels}: remove all but one"
            refused[position] = reason, True
    return refused
