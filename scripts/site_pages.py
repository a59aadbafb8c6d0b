"""The pages of the site that are outside docs/, and links between pages that lead to the same place on the site.

Pages link to each other, to READMEs and to sources by relative paths, as a repository host expects. The site contains
docs/, and below ``project/`` what its pages link to elsewhere in the repository: a page of Markdown as it is, another
text as a page with its lines, a folder as a list of its files. Nothing here needs mkdocs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from site_notebooks import markdown_of

__all__ = ["page_of", "pages", "rewritten", "text_of"]

ROOT = Path(__file__).parents[1]
_DOCS = "docs/"
_OTHERS = "project/"
#: Pages outside docs/ that the site always has.
_ALWAYS = ("README.md", "README.zh.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
_PATTERNS = (
    "benchmarks/README.md",
    "examples/*/README.md",
    "examples/**/*.ipynb",
    "co*/README.md",
    "plugins/*/README.md",
)
#: Suffixes of texts, and how their pages are coloured; other files are copied.
_LANGUAGES = {".py": "python", ".toml": "toml", ".txt": "text", ".sh": "sh", ".json": "json", "": "text", ".c": "c"}
_LONGEST = 200_000

#: Code, whose brackets are no links, or the target of a link: of ``[text](target)``, ``[name]: target`` and HTML.
_CODE_OR_LINK = re.compile(
    r"(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<before>\]\(|^\[[^\]\n]+\]:[ ]+|\b(?:src|href|srcset)=\")(?P<target>[^)\s\"#]*)(?P<anchor>#[^)\s\"]*)?",
    re.DOTALL | re.MULTILINE,
)


def page_of(path: str) -> str:
    """Return the page or file of the site, relative to its root, for a path of the repository.

    ``docs/arm.md`` becomes ``arm.md``, ``plugins/lite_x86/README.md`` ``project/plugins/lite_x86.md``, and ``LICENSE``
    ``project/LICENSE.md``.
    """
    if path.startswith(_DOCS):
        return path.removeprefix(_DOCS)
    file = PurePosixPath(path)
    if file.name == "README.md" and len(file.parts) > 1:
        return f"{_OTHERS}{file.parent}.md"
    if file.suffix == ".md":
        return f"{_OTHERS}{path.lower()}"
    if file.suffix == ".ipynb":
        return f"{_OTHERS}{file.with_suffix('.md')}"
    if (ROOT / path).is_dir() or file.suffix in _LANGUAGES or _is_short_text(path):
        return f"{_OTHERS}{path}.md"
    return f"{_OTHERS}{path}"


def text_of(path: str) -> str:
    """Return the Markdown of a page of the site, by its path in the repository, with links as in the repository."""
    file = ROOT / path
    if file.is_dir():
        names = sorted(one.name + "/" * one.is_dir() for one in file.iterdir() if one.name[0] not in "._")
        return f"# {path}/\n\n" + "".join(f"- `{name}`\n" for name in names)
    if file.suffix == ".ipynb":
        return markdown_of(file)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text
    language = _LANGUAGES.get(file.suffix, "text")
    return f'# {file.name}\n\n`{path}`\n\n````{language} linenums="1"\n{text}\n````\n'


def pages() -> dict[str, str]:
    """Return the paths of what the site has from outside docs/, each with its page or file on the site."""
    found: dict[str, str] = {}
    pending = [path for path in _ALWAYS if (ROOT / path).exists()]
    pending += sorted(file.relative_to(ROOT).as_posix() for pattern in _PATTERNS for file in ROOT.glob(pattern))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        pending += _targets(page.relative_to(ROOT).as_posix())
    while pending:
        path = pending.pop()
        if path not in found and not path.startswith(_DOCS):
            found[path] = page_of(path)
            pending += _targets(path) if path.endswith((".md", ".ipynb")) else ()
    return dict(sorted(found.items()))


def rewritten(path: str, text: str) -> str:
    """Return the text of a page with links for the site; ``path`` is the page's in the repository.

    A link that leads nowhere stays as it is; mkdocs reports it.
    """
    own = PurePosixPath(page_of(path)).parent

    def to_site(target: str) -> str:
        resolved = _resolved(path, target)
        return target if resolved is None else os.path.relpath(page_of(resolved), own).replace(os.sep, "/")

    return _CODE_OR_LINK.sub(lambda match: _replaced(match, to_site), text)


def _replaced(match: re.Match[str], to_site: Callable[[str], str]) -> str:
    if match["code"] or not _is_local(match["target"]):
        return match[0]
    return f"{match['before']}{to_site(match['target'])}{match['anchor'] or ''}"


def _targets(path: str) -> Iterator[str]:
    """Iterate over the paths of the repository that a page links to."""
    for match in _CODE_OR_LINK.finditer(text_of(path)):
        if not match["code"] and _is_local(match["target"]) and (target := _resolved(path, match["target"])):
            yield target


def _is_local(target: str) -> bool:
    return bool(target) and not re.match(r"[a-z]+:", target) and not target.startswith("/")


def _resolved(path: str, target: str) -> str | None:
    """Return the path in the repository to which a link of a page leads; None if nothing is there."""
    resolved = os.path.normpath(PurePosixPath(path).parent / target).replace(os.sep, "/")
    if not (ROOT / resolved).exists():
        return None
    page = f"{resolved}/README.md"  # what a repository host shows for a folder
    return page if (ROOT / page).exists() else resolved


def _is_short_text(path: str) -> bool:
    file = ROOT / path
    if file.stat().st_size > _LONGEST:
        return False
    try:
        return "\0" not in file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
