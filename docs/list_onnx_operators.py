"""Writes the list in docs/onnx.md: the operators that lite-onnx lowers, beside those that Lite has.

``python docs/list_onnx_operators.py``, with the test environment. A test compares the page with what is registered.
"""

from __future__ import annotations

from pathlib import Path

from lite_onnx.lowering.registry import lowered_operators

PAGE = Path(__file__).with_name("onnx.md")
_BEGIN, _END = "<!-- operators: made by list_onnx_operators.py -->", "<!-- end of operators -->"


def operators() -> str:
    """A table of the operators by domain."""
    domains: dict[str, list[str]] = {}
    for domain, name in lowered_operators():
        domains.setdefault(domain or "ai.onnx", []).append(f"`{name}`")
    rows = (f"| `{domain}` | {', '.join(names)} |\n" for domain, names in domains.items())
    return "".join(["| domain | operators |\n", "| --- | --- |\n", *rows])


def page(text: str) -> str:
    """The page with its list as it should be."""
    before, rest = text.split(_BEGIN)
    return f"{before}{_BEGIN}\n{operators()}{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
