"""The page of `lite bench --html`: its contents as text, and in a real browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench_samples import sample_document
from browsers import flawless_pages

from lite_tools.cli.bench_tables import print_document
from lite_tools.pages.bench_report import bench_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>alert('x')</script>&\"\u202e]]>"


def test_page_has_every_part() -> None:
    page = bench_page(sample_document())
    for part in (
        "mobilenet.onnx",
        "Example CPU",
        "Outputs agree",
        "x86, 1 thread, 4 at once",
        "30 kernels found, 2 compiled in 80 ms",
        "not known",
        "no kernel",
        "failed to compile a partition",
        "slower by 11 % (9.0 to 13 %)",
        "python: 3.11 then, 3.12 now",
        "--warmup",
        "prefers-color-scheme: dark",
    ):
        assert part in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)


def test_tables_have_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    print_document(sample_document())
    shown = capsys.readouterr().out
    for part in (
        "118 on x86, 4 on host",
        "4 x NonZero on host, not x86: no kernel",
        "30 kernels found, 2 compiled in 80 ms",
        "not known",
        "4 at once",
        "unlike: python: 3.11 then, 3.12 now",
        "slower by 11 % (9.0 to 13 %)",
        "measured once",
    ):
        assert part in shown


def test_charts_are_well_formed_and_stay_inside() -> None:
    charts = re.findall(r"<svg.*?</svg>", bench_page(sample_document()), re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        root = ElementTree.fromstring(chart)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for element in root.iter("polygon"):
            for x, y in (map(float, point.split(",")) for point in element.attrib["points"].split()):
                assert 0 <= x <= width
                assert 0 <= y <= height


def test_one_run_of_one_session_is_drawn() -> None:
    document = sample_document(("host",), against=None)
    document["results"][0] |= {"latencies_ms": [[1.5]], "under_load": None, "latencies_under_load_ms": []}
    assert bench_page(document).count("<svg") == 2


def test_texts_are_escaped() -> None:
    document = sample_document((HOSTILE,), model=HOSTILE, notes=[HOSTILE], inputs={HOSTILE: HOSTILE})
    page = bench_page(document)
    assert "<script>alert" not in page
    assert "\u202e" not in page


# **** in a browser ****


@pytest.mark.full("browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("names", [("x86, 1 thread", "opencl", "host"), (HOSTILE,)], ids=["usual", "hostile"])
def test_page_in_a_browser(browser: Browser, tmp_path: Path, scheme: str, names: tuple[str, ...]) -> None:
    (tmp_path / "a.html").write_text(bench_page(sample_document(names)), encoding="utf-8")
    with flawless_pages(browser, width=1100, color_scheme=scheme) as open_file:
        page = open_file(tmp_path / "a.html")
        assert page.locator("svg.chart").count() == 3
        assert page.locator("polygon.area").count() == 2 * len(names)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.body).color")
        brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (background, ink)]
        assert (brightness[0] > brightness[1]) == (scheme == "light")
        colour = page.evaluate("getComputedStyle(document.querySelector('polygon.area')).fill")
        assert colour != "rgb(0, 0, 0)"  # the style sheet applies, also under the content security policy
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        charts = page.evaluate("[...document.querySelectorAll('svg.chart')].map(e => e.getBoundingClientRect().width)")
        assert min(charts) >= 640, "a chart scrolls in its box rather than becoming too small to read"
        first = "[...document.querySelectorAll('td:first-child')].map(e => getComputedStyle(e).whiteSpace)"
        assert {*page.evaluate(first)} == {"nowrap"}
