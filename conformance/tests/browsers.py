"""Finds a Chromium for tests that open pages, and skips them with instructions if there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
