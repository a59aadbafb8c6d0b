"""Assembly of a self-contained HTML page: one file with its style, scripts and data, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import click

__all__ = ["assemble_page", "content_policy", "embedded_json", "escaped", "page_file", "printable", "write_page"]

# What XML 1.0 does not allow, and what changes the direction or the end of a line.
_NOT_PRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def assemble_page(title: str, body: str, data: Any, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a page as text.

    Args:
        title: the title, any text.
        body: the HTML of the body, whose texts are escaped.
        data: what the scripts work with, as plain data; they find it as the constant ``data``.
        styles: texts of style sheets.
        scripts: names of files in ``files/``, which share one scope.
    """
    style = "\n".join(styles)
    own = "\n".join(page_file(name) for name in scripts)
    given = 'const data = JSON.parse(document.getElementById("data").textContent);'
    script = f'"use strict";\n(() => {{\n{given}\n{own}}})();\n'
    policy = content_policy(style, script)
    return _PAGE.format(
        policy=policy,
        title=escaped(title),
        style=style,
        body=body,
        data=embedded_json(_printable_data(data)),
        script=script,
    )


def content_policy(style: str, script: str) -> str:
    """Return a content security policy that allows the page's own style and script, and no loading."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def write_page(path: str, text: str, option: str) -> None:
    """Write a page or a picture as UTF-8; a file that exists is replaced at once.

    Raises:
        click.BadParameter: the file that the option names cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():  # such as /dev/stdout
            target.write_text(text, encoding="utf-8")
            return
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{path!r} cannot be written: {error}", param_hint=option) from None


def escaped(text: object) -> str:
    """Return any text for HTML or XML, in elements and in quoted attributes."""
    return html.escape(printable(str(text)))


def printable(text: str) -> str:
    r"""Return the text with control characters and lone surrogates escaped, such as ``\x1b``: legal in XML 1.0."""
    return _NOT_PRINTABLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


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


def _printable_data(value: Any) -> Any:
    """Return plain data with all its texts printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): _printable_data(item) for key, item in value.items()}
    return [_printable_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def page_file(name: str) -> str:
    """Return the text of a file in ``files/``: a style sheet or a script."""
    return (resources.files(__package__) / "files" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
