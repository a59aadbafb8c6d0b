"""The code uses the words of the glossary in docs/architecture.md, and none of those that it replaced."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

PAGE = ROOT / "docs/architecture.md"


def glossary() -> list[tuple[str, str, list[str]]]:
    """Each row: the words it defines, their meaning, and the names that they replaced."""
    section = PAGE.read_text(encoding="utf-8").partition("## Glossary")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return [(word, meaning, re.findall(r"`([^`]+)`", replaced)) for word, meaning, replaced in rows[2:]]


def sources() -> list[Path]:
    """Every Python file of the workspace but this one, and those that are frozen."""
    found = [*ROOT.glob("*/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("*/tests/**/*.py")]
    found += [*ROOT.glob("plugins/*/tests/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("scripts/*.py")]
    return [path for path in found if path != Path(__file__) and ROOT / "tests/api_v1" not in path.parents]


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """The names in a Python file, and the words of its comments, with their lines."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(io.StringIO(file.read()).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
            elif token.type == tokenize.COMMENT:
                yield from ((token.start[0], word) for word in re.findall(r"\w+", token.string))


def test_glossary_is_in_alphabetical_order_and_defines_each_word_once() -> None:
    words = [word for word, _, _ in glossary()]
    assert words == sorted(set(words), key=str.lower)


def test_every_definition_says_something() -> None:
    for word, meaning, _ in glossary():
        assert len(meaning.split()) >= 3, word


def test_replaced_names_are_gone() -> None:
    replaced = {name: word for word, _, names in glossary() for name in names}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name} (say: {replaced[name]})"
        for path in sources()
        for line, name in names_in(path)
        if name in replaced
    ]
    assert not found


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    question = re.compile(r"(What|Who|Whoever|Whose|Whether|Where|How|That)\b")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno if hasattr(node, 'lineno') else 1}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and question.match(ast.get_docstring(node) or "")
    ]
    assert not found
