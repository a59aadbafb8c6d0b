"""Assembly of a self-contained HTML page: one file with its style, scripts and data, which loads nothing."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import click

from lite_tools.commands.safe_html import content_policy, embedded_json

__all__ = ["assemble_page", "escaped", "page_file", "printable", "write_page"]

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
