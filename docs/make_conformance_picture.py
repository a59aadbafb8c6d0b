"""Make docs/conformance.png: the suite's report on ``host`` in a browser.

``python docs/make_conformance_picture.py``, in the test environment with a Chromium (``make browser``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "conformance/tests"))

from browsers import chromium  # noqa: E402 - it lies beside the tests


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "host.html"
        command = [sys.executable, "-m", "lite_conformance", "--backend", "host", "--html", str(page_file)]
        subprocess.run(command, check=True)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1200, "height": 1150}, color_scheme="light")
            page.goto(page_file.as_uri())
            page.wait_for_selector("table")
            page.screenshot(path=str(ROOT / "docs/conformance.png"))


if __name__ == "__main__":
    main()
