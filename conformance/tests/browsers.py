"""Opens pages in a Chromium for tests, and skips them with instructions if there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW_TO_GET_ONE = (
    "no Chromium found: install one (`make browser` on Debian, or `python -m playwright install chromium`) "
    "or name one with LITE_BROWSER=/path/to/chromium"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium: ``LITE_BROWSER``, else one on ``PATH``, else the one that Playwright installed.

    The test is skipped if there is none, and fails if ``LITE_BROWSER`` does not exist.
    """
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        path = _find(playwright.chromium.executable_path)
        # NOTE: Chromium cannot use its sandbox as root, which is common in containers; the pages are trusted.
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium for the tests of a file."""
    with chromium() as found:
        yield found


@contextmanager
def flawless_pages(browser: Browser, *, width: int = 1400, **options: Any) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a file, at an optional fragment of its address; close the pages at the end.

    The test fails if a page has loaded another file, logged a message or raised an error.

    Args:
        browser: as the fixture of this name.
        width: of the window, in pixels; its height is 1000.
        options: of ``Browser.new_context``, such as ``color_scheme``.
    """
    context = browser.new_context(viewport={"width": width, "height": 1000}, **options)
    problems: list[str] = []

    def open_file(path: Path, fragment: str = "") -> Page:
        page = context.new_page()
        address = path.as_uri()
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("request", lambda request: problems.extend([] if is_own(request.url, address) else [request.url]))
        page.goto(address + fragment)
        return page

    def is_own(url: str, address: str) -> bool:
        return url.split("#")[0] == address or url.startswith("data:")

    try:
        yield open_file
    finally:
        context.close()
    assert problems == []


def _find(installed: str) -> str:
    if named := os.environ.get("LITE_BROWSER"):
        found = shutil.which(named)
        if not found:
            pytest.fail(f"LITE_BROWSER={named!r} is not an executable; correct it, or unset it to look on PATH")
        return found
    for name in NAMES:
        if found := shutil.which(name):
            return found
    if Path(installed).is_file():
        return installed
    pytest.skip(HOW_TO_GET_ONE)
