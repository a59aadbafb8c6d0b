"""The site: built strictly, with every page in a menu, every public name, and nothing that is loaded from elsewhere.

The environment that builds it, .venv-docs, is made by `make docs`, and by `make test-full PART=site`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from browsers import browser as browser
from test_pages import requires

import site_api
import site_notebooks
import site_pages
from list_commands import commands as commands_of
from lite_tools.cli import lite
from worked_pages import Block, PageRunner, blocks, commands, matches, without_numbers

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]
MKDOCS = ROOT / ".venv-docs/bin/mkdocs"
NAVIGATION = set(re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
EXAMPLES = sorted((ROOT / "docs/commands").glob("*.md"))
#: Pages that stand alone: what contributors read beside a source, and packages' READMEs that another page describes.
NOT_IN_A_MENU = {"tests/api_v1/README.md", "tests/public_api/README.md"}


# **** sources of the site ****


def test_every_page_is_in_a_menu() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    others = {
        place
        for path, place in site_pages.pages().items()
        if path.endswith((".md", ".ipynb")) and path not in NOT_IN_A_MENU and "/src/" not in path
    }
    missing = (pages | others) - NAVIGATION
    assert not missing, f"add these pages to nav in mkdocs.yml: {sorted(missing)}"


def test_every_page_of_a_menu_is_there() -> None:
    there = {
        *site_pages.pages().values(),
        *(p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")),
    }
    assert there >= NAVIGATION


def test_every_command_has_a_page_with_an_example_and_its_exit_codes() -> None:
    for name, _ in commands_of(lite, "lite"):
        text = (ROOT / f"docs/commands/{name.removeprefix('lite ')}.md").read_text(encoding="utf-8")
        assert f"\n    {name} " in text or re.search(rf"^\$ {name}\b", text, re.MULTILINE), name
        assert re.search(r"^## Exit codes$.*^\| 0 \|", text, re.DOTALL | re.MULTILINE), name


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/arm.md", "[x](opencl.md#install)", "[x](opencl.md#install)"),
        ("docs/arm.md", "[x](../SECURITY.md)", "[x](project/security.md)"),
        ("docs/arm.md", "[x](../examples/ocr)", "[x](project/examples/ocr.md)"),
        ("docs/commands/run.md", "[x](../../README.md#install)", "[x](../project/readme.md#install)"),
        ("README.md", "![x](docs/demo.png)", "![x](../demo.png)"),
        ("plugins/lite_x86/README.md", "[x](../../docs/arm.md)", "[x](../../arm.md)"),
        ("docs/arm.md", "[x](../scripts/workspace.py)", "[x](project/scripts/workspace.py.md)"),
        ("docs/arm.md", "`[x](../SECURITY.md)`", "`[x](../SECURITY.md)`"),
        ("docs/arm.md", "```\n[x](../SECURITY.md)\n```", "```\n[x](../SECURITY.md)\n```"),
        ("docs/arm.md", "[x](https://example.org/a.md)", "[x](https://example.org/a.md)"),
        ("docs/arm.md", "[x](#bfloat16)", "[x](#bfloat16)"),
        ("docs/arm.md", "[x](no_such_page.md)", "[x](no_such_page.md)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(page: str, text: str, expected: str) -> None:
    assert site_pages.rewritten(page, text) == expected


def test_a_notebook_as_a_page(tmp_path: Path) -> None:
    cells = [
        '{"cell_type": "markdown", "source": ["# Title\\n", "text"]}',
        '{"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": ["2"]}}]}',
        '{"cell_type": "code", "source": "plot()", "outputs": [{"data": {"image/png": "AAAA"}}]}',
        '{"cell_type": "code", "source": "show()", "outputs": [{"data": {"text/html": "<b>x</b>"}}]}',
    ]
    file = tmp_path / "notebook.ipynb"
    file.write_text(f'{{"cells": [{", ".join(cells)}]}}')
    text = site_notebooks.markdown_of(file)
    assert text.startswith("# Title\ntext\n\n````python\n1 + 1\n````\n\n````text\n2\n````\n")
    assert 'src="data:image/png;base64,AAAA"' in text
    assert "<b>x</b>" in text


# **** the built site ****


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MKDOCS.exists():
        pytest.skip("the environment .venv-docs is not there: make docs")
    folder = tmp_path_factory.mktemp("site")
    command = [MKDOCS, "build", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class _Page(HTMLParser):
    """The ids of a page, and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        source = given.get("href") if tag == "link" and given.get("rel") != "canonical" else given.get("src")
        if source and tag in ("script", "link", "img", "iframe", "source"):
            self.loaded.append(source)


@pytest.mark.full("site")
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        page = _Page(file)
        assert not [source for source in page.loaded if re.match(r"(https?:)?//", source)], file
        if file.name != "404.html":  # a server shows it for any address
            local = [source.partition("#")[0].partition("?")[0] for source in page.loaded if "data:" not in source]
            assert not [source for source in local if not (file.parent / source).exists()], file
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert not re.findall(r"url\(\s*[\"']?(?:https?:)?//", "".join(styles))


@pytest.mark.full("site")
def test_every_public_name_has_an_entry(site: Path) -> None:
    missing = [name for module in site_api.public_modules() for name in _without_entry(site, module)]
    assert not missing


def _without_entry(site: Path, module: site_api.PublicModule) -> Iterator[str]:
    file = site / module.page.replace(".md", ".html")
    ids, text = _Page(file).ids, file.read_text(encoding="utf-8")
    for name, members in module.names.items():
        full = f"{module.name}.{name}"
        if full not in ids and name != "__version__":
            yield full
        # An attribute that is set outside of __init__ is in the list of its class only.
        yield from (
            f"{full}.{member}"
            for member in members
            if f"{full}.{member}" not in ids and f'title="{full}.{member}"' not in text
        )


@pytest.mark.full("site")
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1440, "dark")])
def test_pages_fit_into_the_window(site: Path, browser: Browser, width: int, scheme: Literal["light", "dark"]) -> None:
    """Only tables and code scroll, each for itself; every picture is there, and no page logs an error."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    for name in sorted({*NAVIGATION, *site_api.pages()}):
        page.goto((site / name.replace(".md", ".html")).as_uri())
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            problems.append(f"{name} is wider than {width} pixels")
        if page.evaluate("[...document.images].some(one => one.complete && !one.naturalWidth)"):
            problems.append(f"{name} has a picture that cannot be shown")
    context.close()
    assert not problems


@pytest.mark.full("site")
def test_search_works_without_a_server(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((site / "commands/run.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("UntrustedCodeError")
    page.wait_for_selector(".md-search-result__item", timeout=60_000)
    assert "Troubleshooting by message" in page.inner_text(".md-search-result__list")
    page.close()


# **** the examples ****


def _made(text: str, name: str) -> str:
    """Return the block of a page that is the file of this name."""
    return next(block.text for block in blocks(text) if block.text.startswith(f"# {name}\n"))


@pytest.mark.full("site")
def test_first_steps(tmp_path: Path) -> None:
    requires("x86")
    runner = PageRunner(tmp_path)
    for block in blocks((ROOT / "docs/first-steps.md").read_text(encoding="utf-8")):
        if block.language == "python":
            runner.write(block)
        elif block.language == "console":
            _follow(runner, block)


@pytest.mark.full("site")
@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples_of_a_command(page: Path, tmp_path: Path) -> None:
    requires("x86")
    runner = PageRunner(tmp_path)
    model = _made((ROOT / "docs/first-steps.md").read_text(encoding="utf-8"), "make_model.py")
    (runner.folder / "make_model.py").write_text(model)
    assert not runner.run_command("python make_model.py")
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "console":
            _follow(runner, block)


def _follow(runner: PageRunner, block: Block) -> None:
    """Type the commands of a block; they print what it shows, but for numbers, which differ between machines."""
    for command, shown in commands(block):
        printed = runner.run_command(command)
        assert matches(without_numbers(shown), without_numbers(printed)), f"{command}\n{printed}"
