"""Words of the command line that stand for options which many commands take, for commands to type next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["option_words"]


def option_words(reader: Mapping[str, Any], backend_options: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the words for options of the reader and of backends."""
    words = [word for name, value in reader.items() for word in ("-R", f"{name}={json.dumps(value)}")]
    for backend, options in backend_options.items():
        words += [word for name, value in options.items() for word in ("-O", f"{backend}.{name}={json.dumps(value)}")]
    return tuple(words)
