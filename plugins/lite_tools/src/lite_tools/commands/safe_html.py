"""Parts of HTML pages that contain texts of other people: data that no text can end, and a policy against loading."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

__all__ = ["content_policy", "embedded_json"]


def content_policy(style: str, script: str) -> str:
    """Return a content security policy that allows the page's own style and script, and no loading."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> str:
    """Return JSON that is safe inside a ``<script>`` element, for any texts.

    It is ASCII only, because of U+2028, U+2029 and lone surrogates, and ``<`` is escaped, so that no text can end the
    element or open a comment. Numbers that are not finite become the strings nan, inf and -inf.
    """
    text = json.dumps(_finite(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """Return the value as strict JSON: numbers that are not finite, and objects of other types, become text."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        if math.isfinite(value):
            return float(f"{value:.9g}")
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value if value is None or isinstance(value, (str, int)) else str(value)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
