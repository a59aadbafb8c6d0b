"""Generated files are up to date: lists in the pages, the drawing of the packages, the known distributions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

import draw_architecture
import make_docs
from lite_core.plugins import default_plugins
from workspace import ROOT, Distribution, distributions


def test_nothing_is_stale() -> None:
    found = make_docs.stale()
    assert not found, f"stale: {', '.join(found)}; run: make docs"


def test_every_list_is_on_a_page_and_every_block_of_a_page_is_written() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    begun = re.findall(r"<!-- begin (.+?)(?:: written by make docs)? -->", text)
    assert sorted(begun) == sorted(make_docs.writers())


def test_the_drawing_shows_each_distribution_once() -> None:
    texts = [element.text for element in ElementTree.fromstring(draw_architecture.drawing()).iter()]
    names = [one.name for one in distributions()]
    assert sorted(text for text in texts if text in names) == sorted(names)
    assert len(names) <= 16, "a drawing with more boxes than this is not readable"


def test_no_line_of_the_drawing_runs_through_a_box() -> None:
    drawing = draw_architecture.Drawing(distributions())
    for arrow in drawing.arrows():
        for (x1, y1), (x2, y2) in zip(arrow.corners, arrow.corners[1:]):
            inside = [
                box
                for box in drawing.boxes.values()
                if max(x1, x2) > box.x + 1 and min(x1, x2) < box.right - 1
                if max(y1, y2) > box.y + 1 and min(y1, y2) < box.bottom - 1
            ]
            assert not inside


OTHERS = [one for one in distributions() if one.name != "lite-tools"]  # its commands are part of every installation


@pytest.mark.parametrize("distribution", OTHERS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("hook", "kind"), [("lite_backends", "backends"), ("lite_commands", "commands"), ("lite_formats", "formats")]
)
def test_a_plugin_brings_what_its_pyproject_states(distribution: Distribution, hook: str, kind: str) -> None:
    given = [item.name for record, item in default_plugins().ask(hook) if record.distribution == distribution.name]
    assert sorted(given) == sorted(distribution.about_lite.get(kind, ()))
